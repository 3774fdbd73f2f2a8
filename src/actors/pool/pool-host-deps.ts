import type { Tenant } from '../../model/tenant.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { PullSecrets } from '../../contracts/pull-secrets.ts';
import type { Records } from '../../contracts/record-store.ts';
import type { PoolPolicy } from '../../machines/pool/arithmetic.ts';
import type { LaunchInput, SandboxEvent } from '../../machines/sandbox/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { ActorRuntime } from '../runtime/actor-runtime.ts';
import type { RetirementLimiter } from '../sandbox/retirement-limiter.ts';
import type { EventSink } from '../runtime/event-feed.ts';
import type { SandboxIndex } from '../sandbox/sandbox-index.ts';

export interface PoolHostDeps {
  readonly pools: Records<PoolRecord>;
  readonly coordination: Coordination;
  readonly pullSecrets?: Pick<PullSecrets, 'forget'>;
  readonly runtime: ActorRuntime;
  readonly policy: PoolPolicy;
  readonly events: EventSink;
  readonly instances: PoolInstances;
  readonly listener: PoolListener;
  /** Has the pool planned anew at that moment. */
  readonly planAt: (uid: string, at: number) => void;
  /** Its usage is compared with the records soon: what is given back now may not be told. */
  readonly reconcileLater: (owner: Tenant) => void;
}

/** The instances of pools, and what a pool does with them. */
export interface PoolInstances {
  readonly index: SandboxIndex;
  readonly retirements: RetirementLimiter;
  readonly newId: () => InstanceId;
  readonly launch: (input: LaunchInput) => void;
  readonly tell: (id: string, event: SandboxEvent) => boolean;
}

/** Hears what becomes of pools. */
export interface PoolListener {
  /** A pool, or how its instances stand, is perhaps not what it was. */
  readonly changed: (record: PoolRecord) => void;
  /** Nobody claims from the pool any more. */
  readonly ending: (uid: string) => void;
  /** The pool is gone for good; what it left behind is to be retired. */
  readonly orphaned: (uid: string) => void;
}
