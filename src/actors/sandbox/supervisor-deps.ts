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
  /** For replicated daemons, or if other parts lead shards too. */
  readonly sharding?: Sharding;
  readonly passwords?: RegistryPasswords;
}

export interface SupervisorWatchers {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly events: EventSink;
}

export interface Sharding {
  readonly replica?: string;
  readonly participant?: ShardParticipant;
}

export interface RegistryPasswords {
  readonly pullSecrets: Pick<PullSecrets, 'forget'>;
  /** Uncached. An env created with passwords is recorded like a pool until then. */
  readonly isEnv?: (uid: string) => Promise<boolean>;
}

export type SupervisorParts = Omit<SupervisorDeps, 'watchers' | 'sharding' | 'passwords'> &
  SupervisorWatchers &
  Sharding &
  Partial<RegistryPasswords>;
