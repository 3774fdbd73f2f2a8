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
  readonly log: Log;
  readonly policy: PoolPolicy;
  readonly newId: () => InstanceId;
  /** This replica's name among those of `coordination`; alone where it is absent. */
  readonly replica?: string;
  readonly participant?: ShardParticipant;
  /** Told what happens; nobody where it is absent. */
  readonly events: EventSink;
  readonly metrics: Metrics;
  /** Forgets the registry passwords of pools that are gone, or were never made. */
  readonly pullSecrets?: Pick<PullSecrets, 'forget'>;
  /**
   * Whether there is an env of this uid, uncached: one that is made with passwords is noted like a
   * pool until then.
   */
  readonly isEnv?: (uid: string) => Promise<boolean>;
}
