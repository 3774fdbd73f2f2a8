import type { Metrics } from '../../contracts/metrics.ts';
import {
  LeaseLost,
  NoPlace,
  OutcomeUnknown,
  RecordConflict,
  type SandboxDriver,
} from '../../contracts/sandbox-driver.ts';

export const measuredDriver = (driver: SandboxDriver, metrics: Metrics): SandboxDriver => {
  const timed = async <T>(operation: string, work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const ended = (outcome: string): void => {
      metrics.count('sandpool_driver_calls_total', { operation, outcome });
      metrics.observe(
        'sandpool_driver_seconds',
        { operation },
        (performance.now() - began) / 1_000,
      );
    };
    try {
      const result = await work();
      ended('done');
      return result;
    } catch (error) {
      const outcome = outcomeOf(error);
      ended(outcome);
      if (outcome === 'conflict') metrics.count('sandpool_conflicts_total', { operation });
      if (outcome === 'fenced') metrics.count('sandpool_fenced_writes_total', {});
      throw error;
    }
  };
  return {
    processes: driver.processes,
    describe: () => driver.describe(),
    watch: (report) => driver.watch(report),
    check: (definition) => {
      driver.check(definition);
    },
    expect: (definition) => {
      driver.expect(definition);
    },
    launch: (launchOrder, permitted) =>
      timed('launch', () => driver.launch(launchOrder, permitted)),
    claim: (...call) => timed('claim', () => driver.claim(...call)),
    amend: (id, change, seen) => timed('amend', () => driver.amend(id, change, seen)),
    bump: (id, seen) => timed('bump', () => driver.bump(id, seen)),
    retire: (...call) => timed('retire', () => driver.retire(...call)),
    release: (id, end) => timed('release', () => driver.release(id, end)),
    forget: (id) => timed('forget', () => driver.forget(id)),
    read: (id) => timed('read', () => driver.read(id)),
    confirm: (id, namespace) => driver.confirm(id, namespace),
    findClaimByKey: (...call) => driver.findClaimByKey(...call),
    idle: (poolUid, namespace, atLeast) => driver.idle(poolUid, namespace, atLeast),
    caughtUp: () => driver.caughtUp(),
    exec: (id, request, signal) => timed('exec', () => driver.exec(id, request, signal)),
    attach: (id, request) => timed('attach', () => driver.attach(id, request)),
    logs: (id, request) => driver.logs(id, request),
    followLogs: (id, from, signal) => driver.followLogs(id, from, signal),
    probe: (id) => driver.probe(id),
    dial: (id, port, signal) => timed('dial', () => driver.dial(id, port, signal)),
    files: driver.files,
    stop: () => driver.stop(),
  };
};

const outcomeOf = (error: unknown): string => {
  if (error instanceof RecordConflict) return 'conflict';
  if (error instanceof OutcomeUnknown) return 'unknown';
  if (error instanceof LeaseLost) return 'fenced';
  if (error instanceof NoPlace) return 'deferred';
  return 'failed';
};
