import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DaemonUnderTest, within } from './a-daemon.ts';
import type { HttpAnswer, HttpClient } from './http-client.ts';
import { untilAnswered } from './until-answered.ts';

const SHIPPED_TEMPLATES = fileURLToPath(new URL('../../../config/templates', import.meta.url));

/** The shipped templates and these, for `--templates-dir`. */
export const aTemplateFolder = (
  templates: Readonly<Record<string, object>>,
): { readonly folder: string; remove(): void } => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-templates-'));
  cpSync(SHIPPED_TEMPLATES, folder, { recursive: true });
  for (const [name, spec] of Object.entries(templates)) {
    writeFileSync(
      join(folder, `${name}.json`),
      JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name },
        spec,
      }),
    );
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, maxRetries: 5 }) };
};

/** With a new key. */
export const aTenant = async (
  daemon: DaemonUnderTest,
  team: string,
  user: string,
): Promise<HttpClient> => {
  const { json } = await daemon.client(daemon.adminKey).post('/admin/api-keys', { team, user });
  return daemon.client(json.apiKey ?? '');
};

/** Unparsed by type, for tests of every field. */
export const bodyOf = (answer: HttpAnswer): unknown => JSON.parse(answer.text);

export const poolStatus = async (
  client: HttpClient,
  name = 'default',
): Promise<Readonly<Record<string, unknown>>> =>
  ((await client.get(`/sandboxpools/${name}`)).json.template?.['status'] ?? {}) as Readonly<
    Record<string, unknown>
  >;

/** Waits for exactly `count` idle instances, with none starting or stopping. */
export const stocked = (client: HttpClient, count: number, name = 'default'): Promise<unknown> => {
  let status: Readonly<Record<string, unknown>> = {};
  return within(
    `${count} idle in ${name}`,
    async () => {
      status = await poolStatus(client, name);
      return (
        (status['idleReplicas'] === count &&
          status['startingReplicas'] === 0 &&
          status['stoppingReplicas'] === 0) ||
        undefined
      );
    },
    () => status,
  );
};

/** Waits for an instance. */
export const claim = (
  client: HttpClient,
  poolName = 'default',
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> => {
  let answer: HttpAnswer | undefined;
  return within(
    `a claim from ${poolName}`,
    async () => {
      answer = await client.post('/sandboxes', { poolName, ...more });
      if (answer.status !== 201 && answer.json.errorCode !== 'POOL_EXHAUSTED')
        throw new Error(`a claim from ${poolName} answered ${answer.status}: ${answer.text}`);
      return answer.json.sandbox?.['sandboxId'];
    },
    () => answer?.text,
  );
};

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
}

/** Throws if it could not run. */
export const run = async (
  client: HttpClient,
  id: string,
  command: string | readonly string[],
  more: Readonly<Record<string, unknown>> = {},
): Promise<Ran> => {
  const answer = await client.post(`/sandboxes/${id}/exec`, { command, ...more });
  if (answer.status !== 200) throw new Error(`exec answered ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text) as Ran;
};

/** Waits for its end. */
export const giveBack = async (client: HttpClient, id: string): Promise<void> => {
  await client.delete(`/sandboxes/${id}`);
  await untilAnswered(404, () => client.get(`/sandboxes/${id}`));
};

export const clear = async (client: HttpClient): Promise<void> => {
  const { json } = await client.get('/sandboxes?phase=Running&limit=1000');
  await Promise.all(
    (json.items ?? []).map((item) => client.delete(`/sandboxes/${String(item['sandboxId'])}`)),
  );
};

/** Waits for the record. */
export const finished = (
  client: HttpClient,
  id: string,
): Promise<Readonly<Record<string, unknown>>> => {
  let items: HttpAnswer['json']['items'];
  return within(
    `${id} is finished`,
    async () => {
      items = (await client.get('/sandboxes?phase=Completed&limit=1000')).json.items;
      return items?.find((item) => item['sandboxId'] === id);
    },
    () => items?.map((item) => item['sandboxId']),
  );
};
