import type { Readable } from 'node:stream';
import type { RecentAudit } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { DeadLetters } from '../../contracts/coordination/dead-letters.ts';
import type { Grants } from '../../contracts/grants.ts';
import type { History } from '../../contracts/history.ts';
import type { InstanceTypes } from '../../contracts/instance-types.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { PullSecrets } from '../../contracts/pull-secrets.ts';
import type { RecordStore, StatusPublisher } from '../../contracts/record-store.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { TemplateSource } from '../../contracts/template-source.ts';
import type { TraceScope } from '../../contracts/tracing.ts';
import type { Volumes } from '../../contracts/volumes.ts';
import type { PlacesPolicy } from '../../machines/pool/arithmetic.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';

/** Describes what an assembly is made with, beside the configuration. */
export interface AssemblyTerms {
  readonly log: Log;
  readonly replica: string;
  readonly types: InstanceTypes;
  readonly metrics: Metrics;
  /** Told, again and again, what the start waits for, where it waits. */
  readonly waits: (problem: string) => void;
  /** Aborts once the process is told to stop: a start that waits rejects with its reason. */
  readonly stopped: AbortSignal;
}

/** The parts below the supervisor: one implementation of each contract, and what goes with it. */
export interface Assembly {
  readonly clock: Clock;
  readonly driver: SandboxDriver;
  readonly records: RecordStore;
  readonly history: History;
  readonly coordination: Coordination;
  /** Says to what asks other services which request it asks for; absent where none is asked. */
  readonly traceScope?: TraceScope;
  /** The templates that are taken over into the records at the start. */
  readonly templates: TemplateSource;
  readonly volumes: Volumes;
  readonly recentAudit: RecentAudit;
  readonly deadLetters: DeadLetters;
  readonly pullSecrets: PullSecrets;
  /** The secret with which the API keys' secrets are hashed. */
  readonly pepper: Buffer;
  /** Makes the keys to begin with, where they are not there. The mirror knows every key by then. */
  readonly ensureFirstKeys: (apiKeys: ApiKeyMirror) => Promise<void>;
  /**
   * The number of instances of one pool that may be starting at a time: enough to keep all that
   * starts them busy, few enough to time each fairly.
   */
  readonly startsAtOnce: number;
  /** Bounds how many instances of all pools become ready at once. If absent, nothing does. */
  readonly startPlaces?: PlacesPolicy;
  /** Whether a first start makes a pool, for whoever tries it. */
  readonly makesDefaultPool: boolean;
  /** A gzipped tar of what a new data folder needs to begin with. */
  readonly backup: (signal: AbortSignal) => Promise<Readable>;
  /** Reports of the mirrors of what others write; none where nobody else does. */
  readonly reflectors: () => readonly MirrorReport[];
  /**
   * The reasons why this replica can't do its work, one sentence each, besides what driver and
   * coordination say.
   */
  readonly problems: () => readonly string[];
  /**
   * Warnings of what works, but gives less than it should, besides what driver and coordination
   * say.
   */
  readonly warnings: () => readonly string[];
  /**
   * Reports that a later version wrote something, from which on this replica must lead nothing; and
   * undefined, once there is nothing of it any more.
   */
  readonly onOutdated: (report: (why: string | undefined) => void) => void;
  /**
   * Says by whom pools that were made or resized by hand are granted; until then none is. Once,
   * before pools are followed.
   */
  readonly grantBy: (grants: Grants<PoolRecord>) => void;
  /** Absent where nobody reads records but by the API. */
  readonly statuses?: StatusPublisher;
  /** Settles when a part can't go on and the daemon must start again, with the cause. */
  readonly failed: Promise<Error>;
  /** Before anything is asked of the parts. */
  start(): Promise<void>;
  /** In order, and as far as it was started; may be repeated. */
  stop(): Promise<void>;
}
