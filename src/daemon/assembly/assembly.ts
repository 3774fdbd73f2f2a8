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

/** Dependencies of an assembly besides the configuration. */
export interface AssemblyTerms {
  readonly log: Log;
  readonly replica: string;
  readonly types: InstanceTypes;
  readonly metrics: Metrics;
  /** Called repeatedly with the reason while the start waits. */
  readonly waits: (problem: string) => void;
  /** Aborts when the process must stop. A waiting start then rejects with its reason. */
  readonly stopped: AbortSignal;
}

/** The parts below the supervisor: one implementation of each contract, and its companions. */
export interface Assembly {
  readonly clock: Clock;
  readonly driver: SandboxDriver;
  readonly records: RecordStore;
  readonly history: History;
  readonly coordination: Coordination;
  /** Links outgoing calls to their request; absent without other services. */
  readonly traceScope?: TraceScope;
  /** Templates that the start copies into the records. */
  readonly templates: TemplateSource;
  readonly volumes: Volumes;
  readonly recentAudit: RecentAudit;
  readonly deadLetters: DeadLetters;
  readonly pullSecrets: PullSecrets;
  /** Secret that hashes the API keys' secrets. */
  readonly pepper: Buffer;
  /** Makes the first keys if they are missing. Requires a mirror that has loaded every key. */
  readonly ensureFirstKeys: (apiKeys: ApiKeyMirror) => Promise<void>;
  /**
   * Maximum of instances of one pool that start at once: enough to use the full capacity, few
   * enough for fair start times.
   */
  readonly startsAtOnce: number;
  /** Limit on starts over all pools; absent for no limit. */
  readonly startPlaces?: PlacesPolicy;
  /** Whether a first start makes a pool for new users. */
  readonly makesDefaultPool: boolean;
  /** Gzipped tar of the files that a new data folder needs. */
  readonly backup: (signal: AbortSignal) => Promise<Readable>;
  /** Reports of mirrors whose records others write; empty if only the daemon writes. */
  readonly reflectors: () => readonly MirrorReport[];
  /**
   * Reasons why this replica can't work, one sentence each. Excludes those of driver and
   * coordination.
   */
  readonly problems: () => readonly string[];
  /** Warnings about reduced service. Excludes those of driver and coordination. */
  readonly warnings: () => readonly string[];
  /**
   * Reports objects of a later version: from then on, this replica must lead nothing. Reports
   * undefined when no such object remains.
   */
  readonly onOutdated: (report: (why: string | undefined) => void) => void;
  /**
   * Sets the grants for pools that were created or resized by hand; until then none is granted.
   * Call once, before pools are followed.
   */
  readonly grantBy: (grants: Grants<PoolRecord>) => void;
  /** Absent if records are only read through the API. */
  readonly statuses?: StatusPublisher;
  /** Resolves with the cause when a part has failed and the daemon must restart. */
  readonly failed: Promise<Error>;
  /** Call before any other use of the parts. */
  start(): Promise<void>;
  /** Stops in order the parts that were started. May be repeated. */
  stop(): Promise<void>;
}
