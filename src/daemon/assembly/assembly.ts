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

export interface AssemblyTerms {
  readonly log: Log;
  readonly replica: string;
  readonly types: InstanceTypes;
  readonly metrics: Metrics;
  readonly waits: (problem: string) => void;
  /** A waiting start rejects with its reason. */
  readonly stopped: AbortSignal;
}

export interface Assembly {
  readonly clock: Clock;
  readonly driver: SandboxDriver;
  readonly records: RecordStore;
  readonly history: History;
  readonly coordination: Coordination;
  readonly traceScope?: TraceScope;
  readonly templates: TemplateSource;
  readonly volumes: Volumes;
  readonly recentAudit: RecentAudit;
  readonly deadLetters: DeadLetters;
  readonly pullSecrets: PullSecrets;
  readonly pepper: Buffer;
  /** Requires a mirror that has loaded every key. */
  readonly ensureFirstKeys: (apiKeys: ApiKeyMirror) => Promise<void>;
  /** Per pool: enough to use the full capacity, few enough for fair start times. */
  readonly startsAtOnce: number;
  /** Over all pools; absent for no limit. */
  readonly startPlaces?: PlacesPolicy;
  /** A first start makes a pool for new users. */
  readonly makesDefaultPool: boolean;
  readonly backup: (signal: AbortSignal) => Promise<Readable>;
  /** Empty if only the daemon writes records. */
  readonly reflectors: () => readonly MirrorReport[];
  /** One sentence each. Excludes problems of driver and coordination. */
  readonly problems: () => readonly string[];
  /** Excludes warnings of driver and coordination. */
  readonly warnings: () => readonly string[];
  /**
   * Reports objects of a later version: from then on, this replica must lead nothing. Undefined
   * once no such object remains.
   */
  readonly onOutdated: (report: (why: string | undefined) => void) => void;
  /**
   * Until then, no pool made or resized by hand is granted. Call once, before pools are followed.
   */
  readonly grantBy: (grants: Grants<PoolRecord>) => void;
  /** Absent if records are only read through the API. */
  readonly statuses?: StatusPublisher;
  readonly failed: Promise<Error>;
  start(): Promise<void>;
  /** May be repeated. */
  stop(): Promise<void>;
}
