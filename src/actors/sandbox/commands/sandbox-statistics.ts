import type { Supervisor } from '../supervisor.ts';
import type { History } from '../../../contracts/history.ts';
import type { SandboxOperations } from './sandbox-operations.ts';

/**
 * Live ones from the indexes, finished ones from history while it keeps them (operation `GET
 * /admin/statistics/sandboxes`). May count a sandbox twice while it ends.
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
