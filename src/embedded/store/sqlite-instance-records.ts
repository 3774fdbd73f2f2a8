import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import { formatFingerprint, parseFingerprint } from '../../model/request-fingerprint.ts';
import type { Claim, End, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { Database } from './database.ts';
import type { Row } from './database-protocol.ts';
import type { InstanceRecords, StoredInstance } from './instance-records.ts';
import type { Revision } from '../../model/identifiers.ts';

/** A revision counts an instance's writes. Ids are never reused. */
export const sqliteInstanceRecords = (database: Database): InstanceRecords => ({
  all: () => allOf(database),
  read: async (id) => {
    const [row] = await database.run('instances.read', id);
    return row && storedOf(row).stored;
  },
  launchOrder: async (record, definition) => {
    const { id, ...launchOrder } = record;
    const revision = onlyRevision(
      await database.run(
        'instances.birth',
        id,
        JSON.stringify(launchOrder),
        JSON.stringify(definition),
      ),
      id,
    );
    return { ...record, revision, state: 'idle' };
  },
  claim: async (seen, claim) => {
    const { owner, claimedAt, idleTimeoutMs, maxLifetimeMs, mark } = claim;
    const revision = onlyRevision(
      await database.run(
        'instances.claim',
        owner.namespace,
        owner.team,
        owner.user,
        claimedAt,
        idleTimeoutMs,
        maxLifetimeMs,
        mark ? formatFingerprint(mark) : null,
        termsText(claim),
        claim.endsAt ?? null,
        seen.id,
        revisionNumber(seen.revision),
      ),
      seen.id,
    );
    return { ...seen, revision, state: 'claimed', claim };
  },
  amend: async (id, change, seen) =>
    onlyRecord(await amended(database, change, [id, revisionNumber(seen)]), id),
  bump: async (id, seen) =>
    onlyRecord(await database.run('instances.bump', id, revisionNumber(seen)), id),
  retire: async (id, seen) => {
    const gone = await database.run('instances.retire', id, revisionNumber(seen));
    if (gone.length === 0) throw moved(id);
  },
  release: async (id, end) => {
    const [row] = await database.run('instances.release', id, end.reason, end.exitCode);
    if (!row) return undefined;
    const record = recordOf(row);
    if (record.state === 'idle') throw new RecordConflict(`instance ${id} is not claimed`);
    return record;
  },
  forget: async (id) => {
    await database.run('instances.forget', id);
  },
});

/** About 1 MB with their definitions. */
const PAGE = 500;

const allOf = async (database: Database): Promise<StoredInstance[]> => {
  const found: StoredInstance[] = [];
  for (let after = 0; ;) {
    const page = (await database.run('instances.page', after, PAGE)).map(storedOf);
    found.push(...page.map(({ stored }) => stored));
    const last = page.at(-1);
    if (!last || page.length < PAGE) return found;
    after = last.seq;
  }
};

const amended = (
  database: Database,
  change: Parameters<InstanceRecords['amend']>[1],
  where: readonly [id: string, seen: number],
): Promise<readonly Row[]> => {
  if ('pausedAt' in change) {
    const { pausedAt, endsAt = null } = change;
    return database.run('instances.pause', pausedAt, endsAt, ...where);
  }
  return 'endsAt' in change
    ? database.run('instances.amendEnd', change.endsAt, ...where)
    : database.run('instances.amend', change.idleTimeoutMs, ...where);
};

const onlyRecord = ([row]: readonly Row[], id: string): InstanceRecord => {
  if (!row) throw moved(id);
  return recordOf(row);
};

const onlyRevision = ([row]: readonly Row[], id: string): string => {
  if (!row) throw moved(id);
  return String(row[0]);
};

const moved = (id: string): RecordConflict =>
  new RecordConflict(`instance ${id} has moved on or is gone`);

const storedOf = ([seq, ...columns]: Row): {
  readonly seq: number;
  readonly stored: StoredInstance;
} => ({
  seq: Number(seq),
  stored: {
    record: recordOf(columns),
    definition: JSON.parse(String(columns.at(-1))) as InstanceDefinition,
  },
});

/** Rarely set: JSON in one column. */
type ClaimTerms = Pick<Claim, 'metadata' | 'sealedEnv' | 'autoResume' | 'autoPause'>;

const termsText = ({ metadata, sealedEnv, autoResume, autoPause }: ClaimTerms): string | null =>
  metadata || sealedEnv !== undefined || autoResume || autoPause
    ? JSON.stringify({ metadata, sealedEnv, autoResume, autoPause })
    : null;

/** Never change after the insert: one column. */
type NewRecord = Omit<InstanceRecord, 'id' | 'revision' | 'state' | 'claim' | 'end'>;

const recordOf = ([
  id,
  revision,
  state,
  namespace,
  team,
  user,
  claimedAt,
  idleTimeoutMs,
  maxLifetimeMs,
  reason,
  exitCode,
  launchOrder,
  marked,
  terms,
  pausedAt,
  endsAt,
]: Row): InstanceRecord => {
  const mark = typeof marked === 'string' ? parseFingerprint(marked) : undefined;
  const claim: Claim | undefined =
    claimedAt === null
      ? undefined
      : {
          owner: { namespace: String(namespace), team: String(team), user: String(user) },
          claimedAt: Number(claimedAt),
          idleTimeoutMs: Number(idleTimeoutMs),
          maxLifetimeMs: Number(maxLifetimeMs),
          ...(mark ? { mark } : {}),
          ...(typeof terms === 'string' ? (JSON.parse(terms) as ClaimTerms) : {}),
          ...(typeof pausedAt === 'number' ? { pausedAt } : {}),
          ...(typeof endsAt === 'number' ? { endsAt } : {}),
        };
  const end: End | undefined =
    reason === null
      ? undefined
      : { reason: reason as End['reason'], exitCode: exitCode === null ? null : Number(exitCode) };
  return {
    ...(JSON.parse(String(launchOrder)) as NewRecord),
    id: String(id),
    revision: String(revision),
    state: state as InstanceRecord['state'],
    ...(claim ? { claim } : {}),
    ...(end ? { end } : {}),
  };
};

/** A foreign revision matches no record. */
export const revisionNumber = (revision: Revision): number =>
  /^\d{1,15}$/.test(revision) ? Number(revision) : -1;
