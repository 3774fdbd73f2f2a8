import type { Supervisor } from '../supervisor.ts';
import type { History } from '../../../contracts/history.ts';
import type { SandboxOperations } from './sandbox-operations.ts';

/**
 * Counts of everybody's sandboxes and idle instances, the live ones of the indexes, the finished
 * ones of history as long as it keeps them (operation `GET /admin/statistics/sandboxes`). One that
 * ends at this moment may be among both.
 */
export const sandboxStatistics =
  ({
    supervisor,
    history,
  }: {
    readonly supervisor: Supervisor;
    readonly history: History;
  }): SandboxOperations['sandboxStatistics'] =>
  async () => {
    const finished = await history.countByNamespace();
    const live = supervisor.index.counts();
    const byNamespace = new Map(live.byNamespace);
    for (const [namespace, count] of finished)
      byNamespace.set(namespace, (byNamespace.get(namespace) ?? 0) + count);
    const completed = sum(finished.values());
    const byStatus = new Map([
      ...live.byStatus,
      ...(completed > 0 ? [['Completed', completed] as const] : []),
    ]);
    return { total: sum(byStatus.values()), byStatus, byNamespace };
  };

const sum = (counts: Iterable<number>): number =>
  [...counts].reduce((total, count) => total + count, 0);
