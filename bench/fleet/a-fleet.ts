import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandDaemon } from '../../src/cli/control.ts';
import { Daemon } from '../daemon.ts';
import type { Bench } from '../figure.ts';
import { pause } from '../process-facts.ts';

const LINK_WITHIN_MS = 60_000;
const LOOK_MS = 20;

/** A daemon that manages a fleet of `hub` and whoever joins. */
export const startManager = (
  bench: Bench,
  terms: { readonly command?: string } = {},
): Promise<Daemon> => Daemon.start(bench.load, ['--role', 'manager', '--cluster-id', 'hub'], terms);

export const joinTokenOf = async (manager: Daemon, clusterID: string): Promise<string> => {
  const { token } = await commandDaemon(manager.dataDir, '/clusters/join-token', { clusterID });
  return String(token);
};

/** Where workers open their links to. */
export const linkAddressOf = (port: number): string => `ws://127.0.0.1:${port}`;

/** Starts a daemon that links to the manager; `port` stands in its place, where it is given. */
export const startWorker = async (
  bench: Bench,
  manager: Daemon,
  { clusterId, port, flags = [] }: WorkerTerms,
): Promise<Daemon> => {
  const file = join(manager.dataDir, `${clusterId}.token`);
  writeFileSync(file, await joinTokenOf(manager, clusterId), { mode: 0o600 });
  const worker = await Daemon.start(bench.load, [
    '--cluster-id',
    clusterId,
    '--fleet-managers',
    linkAddressOf(port ?? manager.service.port),
    '--fleet-join-token-file',
    file,
    ...flags,
  ]);
  await untilLinked(manager, 1);
  return worker;
};

export interface WorkerTerms {
  readonly clusterId: string;
  readonly port?: number;
  readonly flags?: readonly string[];
}

/** Resolves once so many other clusters are connected. */
export const untilLinked = async (manager: Daemon, count: number): Promise<void> => {
  for (const deadline = performance.now() + LINK_WITHIN_MS; ;) {
    const { items } = JSON.parse(
      await manager.service.call({ method: 'GET', path: '/clusters' }, 200),
    ) as { readonly items: readonly { readonly isLocal: boolean; readonly status: string }[] };
    const linked = items.filter(({ isLocal, status }) => !isLocal && status === 'Connected');
    if (linked.length >= count) return;
    if (performance.now() > deadline) throw new Error(`only ${linked.length} clusters linked`);
    await pause(LOOK_MS);
  }
};

/** Runs with a manager and one worker, `west`, both daemons as they are built. */
export const withFleet = async <T>(
  bench: Bench,
  run: (fleet: { readonly manager: Daemon; readonly worker: Daemon }) => Promise<T>,
  flags: readonly string[] = [],
): Promise<T> => {
  const manager = await startManager(bench);
  try {
    const worker = await startWorker(bench, manager, { clusterId: 'west', flags });
    try {
      return await run({ manager, worker });
    } finally {
      await worker.dispose();
    }
  } finally {
    await manager.dispose();
  }
};
