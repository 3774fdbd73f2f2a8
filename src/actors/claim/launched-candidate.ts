import { HeldInstance } from '../sandbox/idle-instances.ts';
import type { StartOutcome } from '../sandbox/claim-launches.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import { DefinitionRefused, type SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { Permits } from '../../lib/permits.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { sandboxQuotaExceeded, tooManyLaunches } from '../../model/limit-refusals.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { isAllowed } from '../../model/pools/source-terms.ts';
import { withImage } from '../../model/pools/with-image.ts';
import { invalidArgument, poolBeingDeleted, Refusal, unavailable } from '../../model/refusals.ts';
import { sameTenant, tenantKey, type Tenant } from '../../model/tenant.ts';
import type { QuotaLimits } from '../pool/commands/quota-limits.ts';
import type { ClaimImage } from '../sandbox/commands/sandbox-operations.ts';
import type { Candidate, Candidates } from './claim-candidates.ts';

export const MOST_LAUNCHES_OF_TENANT = 8;
export const MOST_LAUNCHES = 64;

/** In ms. */
const CLAIM_MS = 5_000;

export class LaunchLimit {
  readonly #permits = new Permits({ all: MOST_LAUNCHES, tenant: MOST_LAUNCHES_OF_TENANT });

  /** Refuses with TOO_MANY_WAITING, or UNAVAILABLE if all are taken. */
  acquire(tenant: Tenant): () => void {
    return this.#permits.take({ all: '', tenant: tenantKey(tenant) }, (kind, most) =>
      kind === 'all'
        ? unavailable('too many sandboxes are starting for claims; try again shortly')
        : tooManyLaunches(most),
    );
  }
}

export interface LaunchedCandidateDeps {
  readonly supervisor: Pick<Supervisor, 'launches' | 'pools'>;
  readonly coordination: Pick<Coordination, 'used'>;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly driver: Pick<SandboxDriver, 'check'>;
  readonly clock: Clock;
  readonly launchLimit: LaunchLimit;
  readonly allowedImages?: readonly string[];
}

export interface LaunchOf {
  readonly pool: PoolRecord;
  readonly owner: Tenant;
  readonly image: ClaimImage;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Launches an instance with the claim's image, outside the pool's replicas. The caller must call
 * `close`, which retires an unclaimed one.
 */
export class LaunchedCandidate implements Candidates {
  readonly waits = true;
  readonly #deps: LaunchedCandidateDeps;
  readonly #of: LaunchOf;
  #id: InstanceId | undefined;
  #endLaunch: (() => void) | undefined;

  constructor(deps: LaunchedCandidateDeps, of: LaunchOf) {
    this.#deps = deps;
    this.#of = of;
  }

  async next(): Promise<Candidate> {
    if (this.#id !== undefined)
      throw unavailable('the sandbox ended before it could be claimed; try again');
    const { clock, supervisor, launchLimit } = this.#deps;
    const { owner, image, waitMs, signal } = this.#of;
    const pool = this.#requirePool();
    this.#requireImage(pool);
    await this.#requireQuota();
    if (supervisor.launches.stopping) throw stopping();
    this.#requireRoom(pool, supervisor.launches.underWay(pool.uid));
    this.#endLaunch = launchLimit.acquire(owner);
    const until = clock.now() + Math.min(waitMs, pool.definition.startupTimeoutMs);
    const claimBy = until + CLAIM_MS;
    const id = (this.#id = supervisor.launches.begin(this.#form(pool), image.name, claimBy));
    const outcome = await supervisor.launches.ready(id, until, signal);
    const poolNow = this.#requirePool();
    if (outcome.kind !== 'ready') throw notStarted(image, outcome);
    this.#requireRoom(poolNow, 0);
    return {
      instance: new HeldInstance({ id, idle: Number.MAX_SAFE_INTEGER, released: () => undefined }),
      place: undefined,
      until: clock.now() + CLAIM_MS,
    };
  }

  notFirstInQueue(): void {}

  /** May be repeated. */
  close(): Promise<void> {
    if (this.#id !== undefined) this.#deps.supervisor.launches.end(this.#id);
    this.#endLaunch?.();
    return Promise.resolve();
  }

  #requirePool(): PoolRecord {
    const pool = this.#deps.supervisor.pools.recordOf(this.#of.pool.uid);
    if (pool?.deleting !== false) throw poolBeingDeleted();
    return pool;
  }

  #requireImage({ definition }: PoolRecord): void {
    const { driver, allowedImages = [] } = this.#deps;
    const { name, field } = this.#of.image;
    if (!isAllowed(name, allowedImages))
      throw invalidArgument(field, 'its image is not one of the allowed images');
    try {
      driver.check(withImage(definition, name));
    } catch (error) {
      if (!(error instanceof DefinitionRefused)) throw error;
      throw invalidArgument(field, `its image ${error.message.replace(/^spec\.\S+: /, '')}`);
    }
  }

  async #requireQuota(): Promise<void> {
    const { coordination, quotaLimits } = this.#deps;
    const { owner } = this.#of;
    const limit = quotaLimits.of(owner).sandboxes;
    if ((await coordination.used(owner)).sandboxes >= limit) throw sandboxQuotaExceeded(limit);
  }

  #requireRoom({ uid, replicas }: PoolRecord, underWay: number): void {
    const { pools } = this.#deps.supervisor;
    const { counts } = pools.get(uid) ?? {};
    if (pools.semantics === 'total' && counts && counts.running + underWay >= replicas)
      throw new Refusal('POOL_EXHAUSTED', 'the pool has as many sandboxes as it may run', {
        retryAfter: 5,
      });
  }

  /** Drops the pool's registry passwords for a claim by another tenant. */
  #form(pool: PoolRecord): PoolRecord {
    if (sameTenant(pool.owner, this.#of.owner)) return pool;
    const { imagePullSecret: _its, ...definition } = pool.definition;
    return { ...pool, definition };
  }
}

const stopping = (): Refusal => unavailable('the daemon is stopping; claim again');

const notStarted = (
  { field }: ClaimImage,
  outcome: Exclude<StartOutcome, { kind: 'ready' }>,
): Refusal => {
  if (outcome.kind === 'stopping') return stopping();
  const { kind, reason } = outcome;
  const why = reason === '' ? '' : `: ${reason.slice(0, 500)}`;
  return kind === 'failed'
    ? invalidArgument(field, `no sandbox with its image starts${why}`)
    : new Refusal('POOL_EXHAUSTED', `no sandbox with that image was ready in time${why}`, {
        retryAfter: 5,
      });
};
