import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { History } from '../../contracts/history.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { PullSecrets } from '../../contracts/pull-secrets.ts';
import type { Records } from '../../contracts/record-store.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { PoolPolicy } from '../../machines/pool/arithmetic.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { ShardParticipant } from '../runtime/shard-participant.ts';
import type { EventSink } from '../runtime/event-feed.ts';

export interface SupervisorDeps {
  readonly driver: SandboxDriver;
  readonly pools: Records<PoolRecord>;
  readonly history: History;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly policy: PoolPolicy;
  readonly newId: () => InstanceId;
  readonly watchers: SupervisorWatchers;
  /** Where other replicas, or other parts that lead, stand beside it. */
  readonly sharding?: Sharding;
  /** Where pools may have passwords for registries. */
  readonly passwords?: RegistryPasswords;
}

/** Takes down what happens. */
export interface SupervisorWatchers {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly events: EventSink;
}

export interface Sharding {
  /** This replica's name among those of `coordination`; alone where it is absent. */
  readonly replica?: string;
  readonly participant?: ShardParticipant;
}

export interface RegistryPasswords {
  /** Forgets the passwords of pools that are gone, or were never made. */
  readonly pullSecrets: Pick<PullSecrets, 'forget'>;
  /**
   * Whether there is an env of this uid, uncached: one that is made with passwords is noted like a
   * pool until then.
   */
  readonly isEnv?: (uid: string) => Promise<boolean>;
}

/** Spreads SupervisorDeps out. */
export type SupervisorParts = Omit<SupervisorDeps, 'watchers' | 'sharding' | 'passwords'> &
  SupervisorWatchers &
  Sharding &
  Partial<RegistryPasswords>;
