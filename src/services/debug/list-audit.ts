import { MOST_AUDIT_LINES_READ, type RecentAudit } from '../../contracts/audit.ts';
import { featureDisabled } from '../../model/refusals.ts';
import type { AuditRecord, ListedAuditRecord } from './audit-view.ts';
import type { ReplicaOperations } from './debug-operations.ts';

/** Newest first, of all replicas (operation `GET /admin/audit`). Reads at most 5,000 lines. */
export const listAudit =
  ({ recent }: { readonly recent: RecentAudit | undefined }): ReplicaOperations['listAudit'] =>
  async (_caller, { limit, cursor, outcome, ...named }) => {
    if (!recent) throw featureDisabled('audit', 'audit');
    const wanted = Object.entries(named).map(
      ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    const items: ListedAuditRecord[] = [];
    for (let from = cursor; ;) {
      const read = await recent.before(from, MOST_AUDIT_LINES_READ);
      for (const { cursor: at, line } of read) {
        from = at;
        const record = wanted.every((text) => line.includes(text)) ? recordOf(line) : undefined;
        if (
          !record ||
          !fits(record, named) ||
          (outcome !== undefined && outcomeOf(record) !== outcome)
        )
          continue;
        items.push({ ...record, cursor: at });
        if (items.length === limit) return { items, nextCursor: at };
      }
      if (read.length < MOST_AUDIT_LINES_READ) return { items };
    }
  };

const fits = (record: AuditRecord, named: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(named).every(([name, value]) => record[name as keyof AuditRecord] === value);

const outcomeOf = ({ status }: AuditRecord): 'done' | 'refused' | 'failed' | undefined =>
  status === undefined ? undefined : status < 400 ? 'done' : status < 500 ? 'refused' : 'failed';

const recordOf = (line: string): AuditRecord | undefined => {
  try {
    return JSON.parse(line) as AuditRecord;
  } catch {
    return undefined;
  }
};
