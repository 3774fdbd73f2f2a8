import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { RESERVATION_MS } from '../../../contracts/coordination/quotas.ts';
import { type Coordination } from '../../../contracts/coordination.ts';
import { RecordExists, type Records } from '../../../contracts/record-store.ts';
import { LeaseLost, OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import { amountsOfPool, SIZED_RESOURCES, type QuotaResource } from '../../../model/pools/quota.ts';
import { poolAlreadyExists, unavailable } from '../../../model/refusals.ts';
import { poolQuotaExceeded } from '../../../model/limit-refusals.ts';
import type { QuotaLimits } from './quota-limits.ts';
import { requireReserved, reserveAll } from '../../sandbox/commands/reservations.ts';

export interface MakePoolDeps {
  readonly supervisor: Pick<Supervisor, 'pools' | 'reconcileLater'>;
  readonly pools: Pick<Records<PoolRecord>, 'create'>;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
}

const MOST_ATTEMPTS = 3;

export type PoolDraft = Omit<PoolRecord, 'revision'>;

/**
 * Happens before the write of the pool's record, within the quota. `undo` reverts any part of it if
 * the pool is not created.
 */
export interface Preparation {
  readonly prepare: () => Promise<void>;
  readonly undo: () => Promise<void>;
}

/**
 * Durable when this resolves. Refuses with QUOTA_EXCEEDED and ALREADY_EXISTS, without side effects.
 * Rejects with OutcomeUnknown if the write may still land; the reservation is then reconciled.
 */
export const makePool = async (
  deps: MakePoolDeps,
  draft: PoolDraft,
  { prepare, undo }: Preparation,
): Promise<PoolRecord> => {
  const since = deps.clock.now();
  deps.supervisor.reconcileLater(draft.owner);
  await reserve(deps, draft);
  try {
    await prepare();
    const record = await written(deps, draft, since);
    await confirm(deps, record);
    return record;
  } catch (error) {
    // If the undo fails, reconciliation of the reservation repeats it.
    if (
      !(error instanceof OutcomeUnknown) &&
      (await undo().then(
        () => true,
        () => false,
      ))
    )
      await release(deps, draft);
    throw error instanceof RecordExists ? poolAlreadyExists() : error;
  }
};

/** Checks the reservation right before the write, however long the preparation took. */
const written = async (
  deps: MakePoolDeps,
  draft: PoolDraft,
  reservedAt: number,
): Promise<PoolRecord> => {
  const { clock, pools } = deps;
  for (let attempt = 1, since = reservedAt; ; attempt++) {
    since = await requireReserved(deps, {
      tenant: draft.owner,
      name: draft.uid,
      resources: ['pools', ...SIZED_RESOURCES],
      since,
    });
    const until = since + RESERVATION_MS;
    try {
      return await pools.create(draft, () => clock.now() <= until);
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error;
      if (attempt === MOST_ATTEMPTS)
        throw unavailable('the pool could not be written in time; try again');
    }
  }
};

/** Reconciliation repairs a failed call. */
const confirm = async ({ coordination }: MakePoolDeps, record: PoolRecord): Promise<void> => {
  const { owner, uid, revision } = record;
  await Promise.allSettled(
    amountsOf(record).map(([resource, amount]) =>
      coordination.confirm(owner, resource, { name: uid, amount, revision }),
    ),
  );
};

const reserve = async (deps: MakePoolDeps, draft: PoolDraft): Promise<void> => {
  const { owner, uid } = draft;
  const limits = deps.quotaLimits.of(owner);
  let isReserved = false;
  try {
    const refused = await reserveAll(
      deps.coordination,
      owner,
      amountsOf(draft).map(([resource, amount]) => [
        resource,
        { name: uid, amount, limit: limits[resource] },
      ]),
    );
    if (refused !== undefined) throw poolQuotaExceeded(refused);
    isReserved = true;
  } finally {
    // If the release fails, the reservation is reconciled later.
    if (!isReserved) await release(deps, draft).catch(() => undefined);
  }
};

const release = async ({ coordination }: MakePoolDeps, draft: PoolDraft): Promise<void> => {
  await Promise.all(
    amountsOf(draft).map(([resource]) => coordination.release(draft.owner, resource, draft.uid)),
  );
};

const amountsOf = (draft: PoolDraft): readonly (readonly [QuotaResource, number])[] => {
  const amounts = amountsOfPool(draft);
  return [
    ['pools', 1],
    ...SIZED_RESOURCES.map((resource) => [resource, amounts[resource]] as const),
  ];
};
