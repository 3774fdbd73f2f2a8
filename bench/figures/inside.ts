import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { scriptedAssembly } from '../lean-assembly.ts';
import { expectAll } from '../load.ts';
import type { Measure } from '../measure.ts';
import { cpuMsOf, pause } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

const [MANY, FEW] = [100_000, 1_000];
const POOL_SIZE = 10_000;
const PAGES = 200;
const WARM_UP = 4;
const CLAIMS_IN_FLIGHT = 32;
const [IDLE_POOLS, IDLE_SIZE] = [200, 50];
const CALM_MS = 15_000;
const IDLE_MS = 30_000;
const MOST_IDLE_ROUNDS = 3;
const FLAGS = ['--quotas-sandboxes', '1000000', '--quotas-replicas', '1000000'];

export const inside: Figure = {
  name: 'inside',
  about: `pages of actors and of sandboxes at ${MANY} running / at ${FEW}; a state chart; processor time of ${IDLE_POOLS} pools of ${IDLE_SIZE}, idle; instances are scripted`,
  run: async (bench) => {
    const command = scriptedAssembly();
    return [...await pages(bench, command), ...await idle(bench, command)];
  },
};

const pages = async (bench: Bench, command: string): Promise<readonly Measure[]> => {
  const many = await Daemon.start(bench.load, FLAGS, { command });
  try {
    const few = await Daemon.start(bench.load, FLAGS, { command });
    try {
      await running(bench, many, MANY);
      await running(bench, few, FEW);
      const rows: Measure[] = [];
      for (const [name, path] of [['page of actors', '/debug/actors?kind=sandbox'], ['page of actors in one state', '/debug/actors?kind=sandbox&state=running'], ['page of sandboxes', '/sandboxes']] as const) {
        rows.push({ name: `${name}, ${MANY} / ${FEW} running, p50`, unit: 'ms', better: 'less', reach: 1.5, beyond: 1.1, ...await compared(bench, [many, few], path) });
      }
      rows.push({ name: 'state chart of the sandbox machine as SVG, p50', unit: 'ms', better: 'less', reach: 50, beyond: 20, ours: await inRounds(bench, () => p50Of(bench, many, '/debug/machines/sandbox?format=svg')) });
      return rows;
    } finally {
      await few.dispose();
    }
  } finally {
    await many.dispose();
  }
};

const idle = async (bench: Bench, command: string): Promise<readonly Measure[]> => {
  const daemon = await Daemon.start(bench.load, FLAGS, { command });
  try {
    for (let pool = 0; pool < IDLE_POOLS; pool += 1) await daemon.service.createFullPool(`idle-${pool}`, IDLE_SIZE);
    await pause(CALM_MS); // what was made has settled
    const shares: number[] = [];
    for (let round = 0; round < Math.min(bench.rounds, MOST_IDLE_ROUNDS); round += 1) {
      const before = cpuMsOf(daemon.pid);
      await pause(IDLE_MS);
      shares.push(((cpuMsOf(daemon.pid) - before) / IDLE_MS) * 100);
    }
    return [{ name: `${IDLE_POOLS} pools of ${IDLE_SIZE} instances, idle: share of a processor`, unit: '%', better: 'less', reach: 2, beyond: 1, ours: shares }];
  } finally {
    await daemon.dispose();
  }
};

/** So many claimed, of as few pools as can be. */
const running = async (bench: Bench, { service }: Daemon, count: number): Promise<void> => {
  for (let left = count; left > 0; left -= POOL_SIZE) {
    const [name, size] = [`pool-${left}`, Math.min(left, POOL_SIZE)];
    await service.createFullPool(name, size);
    expectAll(await bench.load.closed(service.port, service.claims(name, size), CLAIMS_IN_FLIGHT), 201);
  }
};

const compared = async (bench: Bench, [many, few]: readonly [Daemon, Daemon], path: string): Promise<{ readonly ours: readonly number[]; readonly theirs: readonly number[] }> => {
  const sides = { ours: () => p50Of(bench, many, path), theirs: () => p50Of(bench, few, path) };
  for (let turn = 0; turn < WARM_UP; turn += 1) {
    await sides.ours();
    await sides.theirs();
  }
  return await inPairs(bench, sides);
};

const inRounds = async (bench: Bench, measure: () => Promise<number>): Promise<readonly number[]> => {
  const found: number[] = [];
  for (let round = 0; round <= bench.rounds; round += 1) found.push(await measure());
  return found.slice(1); // the first warms up
};

/** By the admin where the path is an admin's. */
const p50Of = async (bench: Bench, { service, dataDir }: Daemon, path: string): Promise<number> => {
  const ask: Ask = { method: 'GET', path, key: readFileSync(join(dataDir, 'keys/admin.key'), 'utf8').trim() };
  const asks = Array.from({ length: PAGES }, () => ask);
  const result = await bench.load.closed(service.port, path.startsWith('/debug/') ? asks : service.keyed(asks), 1);
  expectAll(result, 200);
  return quantile(result.latencies, 0.5);
};
