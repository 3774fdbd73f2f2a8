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
  readonly planAt: (uid: string, at: number) => void;
  /** A release may get lost. */
  readonly reconcileLater: (owner: Tenant) => void;
}

export interface PoolInstances {
  readonly index: SandboxIndex;
  readonly retirements: RetirementLimiter;
  readonly newId: () => InstanceId;
  readonly launch: (input: LaunchInput) => void;
  readonly tell: (id: string, event: SandboxEvent) => boolean;
}

export interface PoolListener {
  readonly changed: (record: PoolRecord) => void;
  /** The pool accepts no claims any more. */
  readonly ending: (uid: string) => void;
  /** The pool is gone for good. Its remaining instances must retire. */
  readonly orphaned: (uid: string) => void;
}
