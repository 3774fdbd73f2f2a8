import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { TerminalConnection } from '../../src/cli/client/terminal-connection.ts';
import { compatibleId } from '../../src/http/e2b/sandbox-id.ts';
import { frameOf } from '../../src/http/e2b/services/rpc/frames.ts';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { pause } from '../process-facts.ts';
import type { NoisyTenant } from './noisy-tenant.ts';

/** Continues until the signal, then restores things. */
export type Worst = (signal: AbortSignal) => Promise<void>;

/** Others should not feel it. */
export interface Flood {
  readonly name: string;
  readonly about: string;
  /** On Kubernetes, nodes withstand what happens on them. */
  readonly where: 'both' | 'embedded';
  /** The other tenant's pool has readiness probes too. */
  readonly probed?: true;
  readonly compatible?: true;
  /** Not measured. */
  readonly prepare: (tenant: NoisyTenant) => Promise<Worst>;
}

const TINY = { resources: { limits: { cpu: '10m', memory: '32Mi' } } };
const [POOLS, REPLICAS] = [20, 32];
const RESTART_MS = 500;
const LONG_VALUES = Array.from({ length: 110 }, (_, n) => ({
  name: `LONG_${n}`,
  value: 'x'.repeat(1_900),
}));
const NOTES = Object.fromEntries(
  Array.from({ length: 60 }, (_, n) => [`note-${n}`, 'y'.repeat(900)]),
);
const LARGEST_START = JSON.stringify({
  process: { cmd: '/bin/true', args: Array.from({ length: 1_000 }, () => 'x'.repeat(255)) },
  stdin: false,
});
const SANDBOXES = 8;
const DELETES = 100_000;
const FRAME = Buffer.from('x');
/** For a terminal that waits in this process. */
const UNSENT_BYTES = 262_144;

/** Fills the buffers of as many connections to itself as it may have. */
const LOOPBACK = `
import socket, time
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(4096)
ends = []
while True:
    try:
        a = socket.socket(); a.connect(server.getsockname()); b, _ = server.accept()
        for end in (a, b):
            end.setblocking(False)
            try:
                while True: end.send(b'x' * 65536)
            except BlockingIOError: pass
        ends += [a, b]
    except OSError: time.sleep(0.05)
`;

/** They do it from their start, without a claim. */
const instances =
  (count: number, main: object) =>
  async (tenant: NoisyTenant): Promise<Worst> => {
    await tenant.makePool('noisy', 0, main);
    return async (signal) => {
      await tenant.scale('noisy', count);
      await until(signal);
      await tenant.scale('noisy', 0);
      await tenant.untilIdle('noisy', 0);
    };
  };

const until = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};

const turnOf = (ids: readonly string[], n: number): string => ids[n % ids.length] ?? '';

export const FLOODS: readonly Flood[] = [
  {
    name: 'probes',
    about: '64 instances whose readiness probes hang for 30 s',
    where: 'embedded',
    probed: true,
    prepare: instances(64, {
      ...TINY,
      readinessProbe: {
        exec: { command: ['/bin/sleep', '300'] },
        periodSeconds: 1,
        timeoutSeconds: 30,
      },
    }),
  },
  {
    name: 'pools',
    about: `${POOLS} pools of ${REPLICAS} emptied and filled again and again`,
    where: 'both',
    prepare: async (tenant) => {
      const names = Array.from({ length: POOLS }, (_, n) => `noisy-${n}`);
      for (const name of names)
        await tenant.makePool(name, 0, { command: ['/bin/sleep', 'infinity'], ...TINY });
      const all = (replicas: number, signal?: AbortSignal) =>
        Promise.all(
          names.map((name) =>
            tenant.ask(
              { method: 'PUT', path: `/sandboxpools/${name}`, body: { replicas } },
              signal,
            ),
          ),
        );
      return async (signal) => {
        while (!signal.aborted) {
          await all(REPLICAS, signal);
          await pause(2 * RESTART_MS);
          await all(0, signal);
          await pause(RESTART_MS);
        }
        for (const name of names) await tenant.scale(name, 0);
        for (const name of names) await tenant.untilIdle(name, 0);
      };
    },
  },
  {
    name: 'tokens',
    about: `terminal tokens of ${SANDBOXES} sandboxes, 64 requests at a time`,
    where: 'both',
    prepare: async (tenant) => {
      const ids = await tenant.claimed(SANDBOXES);
      return (signal) =>
        tenant.keepAsking(
          (n) => ({ method: 'POST', path: `/sandboxes/${turnOf(ids, n)}/exec-token`, body: {} }),
          { atOnce: 64, signal },
        );
    },
  },
  {
    name: 'calls',
    about: `starts of 256 KiB at the port of E2B's SDKs, 8 at a time`,
    where: 'embedded',
    compatible: true,
    prepare: async (tenant) => {
      const { compatiblePort: port, key } = tenant.terms;
      const ids = await tenant.claimed(SANDBOXES);
      const tokens: string[] = [];
      for (const id of ids) {
        const path = `/sandboxes/${compatibleId(id)}`;
        const text = await tenant.expect({
          ...{ method: 'GET', path, port },
          headers: { 'X-API-Key': toCompatibleForm(key) },
        });
        tokens.push((JSON.parse(text) as { envdAccessToken: string }).envdAccessToken);
      }
      const body = frameOf(LARGEST_START);
      return (signal) =>
        tenant.keepAsking(
          (n) => ({
            ...{ method: 'POST', path: '/process.Process/Start', port, body },
            headers: {
              'Content-Type': 'application/connect+json',
              'X-Access-Token': turnOf(tokens, n),
            },
          }),
          { atOnce: 8, signal },
        );
    },
  },
  {
    name: 'previews',
    about: 'previews of a template of 220 KB, over 128 connections',
    where: 'both',
    prepare: async (tenant) => {
      await tenant.makePool('long', 0, { ...TINY, env: LONG_VALUES });
      return (signal) =>
        tenant.keepAsking(
          () => ({ method: 'POST', path: '/sandboxpools/long/sync-template/preview', body: {} }),
          { atOnce: 128, signal },
        );
    },
  },
  {
    name: 'nuls',
    about: `256 commands at a time that print NULs without end, in ${SANDBOXES} sandboxes`,
    where: 'embedded', // kwok runs commands on this machine, without limits of a node
    prepare: async (tenant) => {
      const ids = await tenant.claimed(SANDBOXES);
      return (signal) =>
        tenant.keepAsking(
          (n) => ({
            method: 'POST',
            path: `/sandboxes/${turnOf(ids, n)}/exec`,
            body: { command: ['/bin/cat', '/dev/zero'] },
          }),
          { atOnce: 256, signal },
        );
    },
  },
  {
    name: 'frames',
    about: 'eight terminals that are sent frames of one byte',
    where: 'both',
    prepare: async (tenant) => {
      const ids = await tenant.claimed(SANDBOXES);
      return async (signal) => {
        const opened = (await Promise.all(ids.map((id) => tenant.terminal(id)))).filter(
          (each) => each !== undefined,
        );
        if (opened.length < ids.length)
          throw new Error(
            `${opened.length} terminals of ${ids.length} were opened: ${JSON.stringify(tenant.statuses)}`,
          );
        await Promise.all(opened.map((terminal) => typing(terminal, signal)));
        for (const terminal of opened) terminal.close();
      };
    },
  },
  {
    name: 'loopback',
    about: `${SANDBOXES} sandboxes that fill the buffers of their own loopback`,
    where: 'embedded',
    prepare: instances(SANDBOXES, { command: ['/usr/bin/env', 'python3', '-c', LOOPBACK] }),
  },
  {
    name: 'waiting',
    about: '2,000 claims that wait for an instance that does not come',
    where: 'both',
    prepare: async (tenant) => {
      await tenant.makePool('empty', 0);
      return (signal) =>
        tenant.keepAsking(
          () => ({
            method: 'POST',
            path: '/sandboxes',
            body: { poolName: 'empty', waitTimeoutSeconds: 60 },
          }),
          { atOnce: 2_000, signal },
        );
    },
  },
  {
    name: 'terminals',
    about: '4,096 terminals asked for, 64 at a time, and those opened kept',
    where: 'both',
    prepare: async (tenant) => {
      const ids = await tenant.claimed(SANDBOXES);
      return async (signal) => {
        const opened: TerminalConnection[] = [];
        let asked = 0;
        await Promise.all(
          Array.from({ length: 64 }, async () => {
            while (!signal.aborted && asked < 4_096) {
              const terminal = await tenant.terminal(turnOf(ids, asked++));
              if (terminal) opened.push(terminal);
              else await pause(20);
            }
          }),
        );
        await until(signal);
        for (const terminal of opened) terminal.close();
        await Promise.all(opened.map((terminal) => terminal.ended));
      };
    },
  },
  {
    name: 'kept',
    about: 'answers of 60 KB kept for their Idempotency-Key, 16 requests at a time',
    where: 'both',
    // each pool is made and removed: only a creation's answer is kept
    prepare: async (tenant) => (signal) =>
      tenant.keepAsking(
        (n) =>
          n % 2 === 0
            ? {
                method: 'POST',
                path: '/sandboxpools',
                body: {
                  name: `noted-${n}`,
                  replicas: 0,
                  templateName: tenant.terms.template,
                  annotations: NOTES,
                },
                headers: { 'Idempotency-Key': randomUUID() },
              }
            : { method: 'DELETE', path: `/sandboxpools/noted-${n - 1}` },
        { atOnce: 16, signal },
      ),
  },
  {
    name: 'logs',
    about: '16 instances that log without end',
    where: 'embedded',
    prepare: instances(16, {
      command: ['/bin/sh', '-c', 'exec yes "a line of a log that says nothing at all"'],
    }),
  },
  {
    name: 'burning',
    about: '60 instances of one cpu that burn theirs',
    where: 'embedded',
    prepare: instances(60, {
      command: ['/bin/sh', '-c', 'while :; do :; done'],
      resources: { limits: { cpu: '1', memory: '32Mi' } },
    }),
  },
  {
    name: 'deletes',
    about: 'deletes of sandboxes that are not there, 64 at a time, 100,000 at most',
    where: 'both',
    prepare: async (tenant) => {
      let left = DELETES;
      await tenant.expect({ method: 'GET', path: '/sandboxes' });
      return (signal) =>
        tenant.keepAsking(
          () => (left-- > 0 ? { method: 'DELETE', path: `/sandboxes/${unknownId()}` } : undefined),
          { atOnce: 64, signal },
        );
    },
  },
];

/** From long ago. */
const unknownId = (): string => `00000000-0000-7${randomUUID().slice(15)}`;

const typing = async (
  { stream, ended }: TerminalConnection,
  signal: AbortSignal,
): Promise<void> => {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!signal.aborted && !over) {
    for (let n = 0; n < 200 && stream.writableLength < UNSENT_BYTES; n += 1) stream.write(FRAME);
    await pause(1);
  }
};
