import { expect } from 'chai';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { rejection } from '../support/harness/rejection.ts';
import { callsOf } from '../support/harness/engine-operations.ts';
import type { CompatibleApi } from './a-compatible-api.ts';
import type { Sdk, SdkOptions } from './a-sdk.ts';

interface Pausing {
  betaPause(id: string, options: SdkOptions): Promise<boolean>;
  pause(id: string, options: SdkOptions): Promise<boolean>;
}

/** The control API as one version of the package sees it. */
export interface ControlWorld {
  readonly Sandbox: Sdk;
  readonly version: string;
  /** The cluster on which the sandboxes are; absent: the one that is asked. */
  readonly clusterId?: string;
  readonly options: SdkOptions;
  /** Those of another tenant. */
  readonly stranger: SdkOptions;
  /** The server's own, in ms. */
  readonly now: () => number;
  /** Variables of the last claim, as the server has them. */
  readonly claimedEnv: () => Readonly<Record<string, string>> | undefined;
}

export type ControlStep = (world: ControlWorld) => Promise<void>;

/** Returns the world of an API over an engine. */
export const controlWorld = (
  { operations, keys, url }: CompatibleApi,
  { version, Sandbox }: { readonly version: string; readonly Sandbox: Sdk },
): ControlWorld => {
  const optionsOf = (key: string): SdkOptions => ({
    apiKey: toCompatibleForm(key),
    apiUrl: url,
    sandboxUrl: url,
  });
  const claims = callsOf(operations, 'claimSandbox');
  return {
    ...{ Sandbox, version },
    options: optionsOf(keys.tenant),
    stranger: optionsOf(keys.stranger),
    now: () => operations.clock.now(),
    claimedEnv: () => claims.at(-1)?.[1].env,
  };
};

/** What E2B's SDKs may expect of the control API, by what it comes to. */
export const CONTROL_STEPS = {
  'creates a sandbox, shows it, and ends it once': async (world) => {
    const { Sandbox, options, claimedEnv, clusterId } = world;
    const sandbox = await Sandbox.create('base', {
      ...options,
      timeoutMs: 60_000,
      metadata: { run: 'a b', größe: '1&2' },
      envs: { TOKEN: 'canary' },
    });

    const info = await sandbox.getInfo();
    expect(sandbox.sandboxId).to.match(new RegExp(`^[0-9a-f]{32}${clusterId ?? ''}$`));
    expect(info).to.deep.include({
      sandboxId: sandbox.sandboxId,
      templateId: clusterId === undefined ? 'default' : `${clusterId}::default`,
      metadata: { run: 'a b', größe: '1&2' },
      state: 'running',
      cpuCount: 1,
      memoryMB: 256,
    });
    expect(info.endAt.getTime() - info.startedAt.getTime()).to.equal(60_000);
    expect(claimedEnv()).to.deep.equal({ TOKEN: 'canary' });
    expect(await sandbox.isRunning()).to.equal(true);
    expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(true);
    expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(false);
    expect(await sandbox.isRunning()).to.equal(false);
  },

  'names the host of a port by a name that URLs can have': async ({ Sandbox, options }) => {
    const sandbox = await Sandbox.create('base', options);
    const host = new URL(options.apiUrl).host.replace('127.0.0.1', 'localhost');
    const name = `3000-${sandbox.sandboxId}.${host}`;

    expect(sandbox.getHost(3_000)).to.equal(name);
    expect(new URL(`http://${name}/`).host).to.equal(name);
    await sandbox.kill();
  },

  'moves the end of a sandbox either way, and on alone by a connection': async (world) => {
    const { Sandbox, options } = world;
    const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 60_000 });
    const secondsLeft = async (): Promise<number> => {
      const { endAt } = await Sandbox.getInfo(sandbox.sandboxId, options);
      return (endAt.getTime() - world.now()) / 1_000;
    };

    await sandbox.setTimeout(30_000);
    expect(await secondsLeft()).to.equal(30);
    await Sandbox.setTimeout(sandbox.sandboxId, 3_600_000, options);
    expect(await secondsLeft()).to.equal(3_600);
    const again = await Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 10_000 });
    expect(again.sandboxId).to.equal(sandbox.sandboxId);
    expect(await secondsLeft()).to.equal(3_600);
    await Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 7_200_000 });
    expect(await secondsLeft()).to.equal(7_200);
    expect(await again.isRunning()).to.equal(true);
    await sandbox.kill();
    expect((await rejection(Sandbox.connect(sandbox.sandboxId, options))).name).to.match(
      /NotFoundError$/,
    );
  },

  'lists sandboxes by their metadata, page by page': async ({ Sandbox, options, version }) => {
    const made: string[] = [];
    for (const job of ['1', '2', '3'])
      made.push(
        (await Sandbox.create('base', { ...options, metadata: { 'a b': `=&%${version}`, job } }))
          .sandboxId,
      );
    const pages = Sandbox.list({
      ...options,
      limit: 2,
      query: { metadata: { 'a b': `=&%${version}` }, state: ['running'] },
    });

    const seen: string[][] = [];
    while (pages.hasNext) seen.push((await pages.nextItems()).map(({ sandboxId }) => sandboxId));

    expect(seen.map(({ length }) => length)).to.deep.equal([2, 1]);
    expect(seen.flat()).to.have.members(made);
    for (const id of made) await Sandbox.kill(id, options);
  },

  'pauses a sandbox once, and has it go on by a connection': async ({ Sandbox, options }) => {
    const sandbox = await Sandbox.create('base', options);
    const pause = (): Promise<unknown> =>
      'betaPause' in Sandbox
        ? (Sandbox as unknown as Pausing).betaPause(sandbox.sandboxId, options)
        : (Sandbox as unknown as Pausing).pause(sandbox.sandboxId, options);

    expect(await pause()).to.equal(true);
    expect((await sandbox.getInfo()).state).to.equal('paused');
    expect(await sandbox.isRunning()).to.equal(false);
    expect(await pause()).to.equal(false);
    await Sandbox.connect(sandbox.sandboxId, options);
    expect((await sandbox.getInfo()).state).to.equal('running');
    expect(await sandbox.isRunning()).to.equal(true);
    await sandbox.kill();
  },

  "says of another tenant's sandbox what it says of none": async (world) => {
    const { Sandbox, options, stranger } = world;
    const { sandboxId } = await Sandbox.create('base', options);
    const other = sandboxId.replace(/(?<=^.{31})./, 'f');

    const theirs = await rejection(Sandbox.getInfo(sandboxId, stranger));
    const none = await rejection(Sandbox.getInfo(other, stranger));
    expect(theirs.name).to.equal(none.name);
    expect(theirs.message.replace(sandboxId, '')).to.equal(none.message.replace(other, ''));
    expect(await Sandbox.kill(sandboxId, stranger)).to.equal(false);
    expect(await Sandbox.kill(sandboxId, options)).to.equal(true);
  },

  'asks for the token of a sandbox, whoever knows its id': async ({ Sandbox, options }) => {
    const { sandboxId } = await Sandbox.create('base', options);
    const at = { 'E2b-Sandbox-Id': sandboxId };
    for (const headers of [at, { ...at, 'X-Access-Token': options.apiKey }]) {
      const answer = await fetch(new URL('/health', options.sandboxUrl), { headers });
      expect(answer.status).to.equal(401);
    }
    await Sandbox.kill(sandboxId, options);
  },

  'refuses a key that is none': async ({ Sandbox, options }) => {
    const error = await rejection(
      Sandbox.create('base', { ...options, apiKey: 'e2b_0123456789abcdef' }),
    );

    expect(error.name).to.equal('AuthenticationError');
  },
} satisfies Readonly<Record<string, ControlStep>>;
