import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import { RESERVATION_MS, type Coordination } from '../contracts/coordination.ts';
import { RecordExists, type Records } from '../contracts/record-store.ts';
import { LeaseLost, OutcomeUnknown } from '../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../model/pool.ts';
import { poolAlreadyExists, poolQuotaExceeded, unavailable } from '../model/refusals.ts';
import type { QuotaLimits } from './quota-limits.ts';
import { requireReserved } from './reservations.ts';

export interface MakePoolDeps {
  readonly supervisor: Pick<Supervisor, 'pools' | 'settleLater'>;
  readonly pools: Pick<Records<PoolRecord>, 'create'>;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
}

const MOST_ATTEMPTS = 3;

export type PoolDraft = Omit<PoolRecord, 'revision'>;

/** What goes before the pool's record, within the quota; and what undoes it, however far it came, where there is no pool after all. */
export interface Preparation {
  readonly prepare: () => Promise<void>;
  readonly undo: () => Promise<void>;
}

/**
 * Makes a pool within its owner's quota; durable when it resolves. Refuses with QUOTA_EXCEEDED and ALREADY_EXISTS, and leaves
 * nothing then. Rejects with OutcomeUnknown where it may still land; what was reserved is settled later.
 */
export const makePool = async (deps: MakePoolDeps, draft: PoolDraft, { prepare, undo }: Preparation): Promise<PoolRecord> => {
  const since = deps.clock.now();
  deps.supervisor.settleLater(draft.owner);
  await reserve(deps, draft);
  try {
    await prepare();
    const record = await written(deps, draft, since);
    await confirm(deps, record);
    return record;
  } catch (error) {
    // What can't be undone is undone when the reservation is settled.
    if (!(error instanceof OutcomeUnknown) && await undo().then(() => true, () => false)) await release(deps, draft);
    throw error instanceof RecordExists ? poolAlreadyExists() : error;
  }
};

/** Right before the write it is looked whether the reservation counts, however long that took; so also where the write could not be sent soon enough. */
const written = async (deps: MakePoolDeps, draft: PoolDraft, reservedAt: number): Promise<PoolRecord> => {
  const { clock, pools } = deps;
  for (let attempt = 1, since = reservedAt; ; attempt++) {
    since = await requireReserved(deps, { tenant: draft.owner, name: draft.uid, resources: ['pools', 'replicas'], since });
    const until = since + RESERVATION_MS;
    try {
      return await pools.create(draft, () => clock.now() <= until);
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error;
      if (attempt === MOST_ATTEMPTS) throw unavailable('the pool could not be written in time; try again');
    }
  }
};

/** What could not be told is settled later. */
const confirm = async ({ coordination }: MakePoolDeps, { owner, uid, replicas, revision }: PoolRecord): Promise<void> => {
  await Promise.allSettled([
    coordination.confirm(owner, 'pools', { name: uid, amount: 1, revision }),
    coordination.confirm(owner, 'replicas', { name: uid, amount: replicas, revision }),
  ]);
};

const reserve = async ({ coordination, quotaLimits }: MakePoolDeps, { owner, uid, replicas }: PoolDraft): Promise<void> => {
  const limits = quotaLimits.of(owner);
  if (!await coordination.reserve(owner, 'pools', { name: uid, amount: 1, limit: limits.pools })) throw poolQuotaExceeded();
  let granted = false;
  try {
    granted = await coordination.reserve(owner, 'replicas', { name: uid, amount: replicas, limit: limits.replicas });
  } finally {
    // Where even that is out of reach, what was reserved is settled later.
    if (!granted) await coordination.release(owner, 'pools', uid).catch(() => undefined);
  }
  if (!granted) throw poolQuotaExceeded();
};

const release = async ({ coordination }: MakePoolDeps, { owner, uid }: PoolDraft): Promise<void> => {
  await coordination.release(owner, 'pools', uid);
  await coordination.release(owner, 'replicas', uid);
};
