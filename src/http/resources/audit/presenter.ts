import type { AuditRecord, ListedAuditRecord } from '../../../services/debug/audit-view.ts';
import type { AuditRecordWire } from './schema.ts';

export const presentAuditRecord = (record: ListedAuditRecord): AuditRecordWire => ({
  seq: record.seq,
  time: record.time,
  replica: record.replica,
  kind: record.kind,
  ...given(record, [
    'requestId',
    'via',
    'namespace',
    'team',
    'user',
    'role',
    'keyId',
    'operation',
    'params',
    'target',
    'status',
    'errorCode',
    'replayed',
    'count',
    'why',
    'since',
    'after',
    'missing',
    'boot',
    'version',
    'pid',
  ]),
  prev: record.prev,
  hash: record.hash,
  cursor: record.cursor,
});

const given = <K extends keyof AuditRecord>(
  record: AuditRecord,
  names: readonly K[],
): Pick<AuditRecord, K> =>
  Object.fromEntries(
    names.flatMap((name) => (record[name] === undefined ? [] : [[name, record[name]]])),
  ) as Pick<AuditRecord, K>;
