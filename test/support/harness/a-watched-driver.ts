import type { ExecOutcome, ExecRequest } from '../../../src/contracts/sandbox-driver.ts';
import type { EmbeddedDriverOptions } from '../../../src/embedded/driver/sandbox-driver.ts';
import type { LaunchOrder, InstanceRecord } from '../../../src/model/sandbox.ts';
import { aSpawnedDriver, type SpawnedDriver } from './a-spawned-driver.ts';
import { NEVER_COMES_MS } from './eventually.ts';
import { FactLog } from './fact-log.ts';
import { anOrder, permitted } from '../builders/instance-orders.ts';

export interface WatchedDriver extends SpawnedDriver {
  readonly log: FactLog;
  /** Resolves once it is available. */
  launched(order?: LaunchOrder): Promise<InstanceRecord>;
  exec(id: string, argv: readonly string[], part?: Partial<ExecRequest>): Promise<ExecOutcome>;
  /** Returns standard output. */
  sh(id: string, script: string, part?: Partial<ExecRequest>): Promise<string>;
}

/** A driver with real sandboxes, watched. */
export const aWatchedDriver = async (
  part: Partial<EmbeddedDriverOptions> = {},
): Promise<WatchedDriver> => {
  const spawned = aSpawnedDriver(part);
  const log = new FactLog();
  const { driver } = spawned;
  await driver.watch(log.report);
  const exec = (
    id: string,
    argv: readonly string[],
    request: Partial<ExecRequest> = {},
  ): Promise<ExecOutcome> =>
    driver.exec(
      id,
      { argv, timeoutMs: NEVER_COMES_MS, outputLimit: 1 << 20, ...request },
      new AbortController().signal,
    );
  return {
    ...spawned,
    log,
    exec,
    launched: async (order = anOrder()) => {
      const record = await driver.launch(order, permitted);
      await log.when(record.id, 'available');
      return record;
    },
    sh: async (id, script, request) =>
      String((await exec(id, ['sh', '-c', script], request)).stdout),
  };
};
