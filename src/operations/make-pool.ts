import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import { RecordExists, type Records } from '../contracts/record-store.ts';
import { OutcomeUnknown } from '../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../model/pool.ts';
import { poolAlreadyExists, poolQuotaExceeded } from '../model/refusals.ts';
import type { QuotaLimits } from './quota-limits.ts';
import { requireReserved } from './reservations.ts';

export interface MakePoolDeps {
  readonly supervisor: Pick<Supervisor, 'pools' | 'settleLater'>;
  readonly pools: Pick<Records<PoolRecord>, 'create'>;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
}

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
    await requireReserved(deps, { tenant: draft.owner, name: draft.uid, resources: ['pools', 'replicas'], since }); // right before the write, however long that took
    const record = await deps.pools.create(draft);
    deps.supervisor.pools.add(record);
    return record;
  } catch (error) {
    // What can't be undone is undone when the reservation is settled.
    if (!(error instanceof OutcomeUnknown) && await undo().then(() => true, () => false)) await release(deps, draft);
    throw error instanceof RecordExists ? poolAlreadyExists() : error;
  }
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
