import type { Caller } from '../model/tenant.ts';
import type { ApprovalOperations } from './approvals/approval-operations.ts';
import type { AuditList, AuditRequest } from './debug/audit-view.ts';
import type { LogLevels } from './debug/log-levels.ts';
import type { DebugOperations } from './debug/debug-operations.ts';
import type { ManagersOperations } from './fleet/managers.ts';
import type { TemplateClusterView } from './fleet/template-clusters.ts';
import type { FileOperations } from './files/file-operations.ts';
import type { KeyOperations } from './keys/key-operations.ts';
import type { RequestOperations } from './requests/request-operations.ts';
import type { SandboxOperations } from './sandboxes/sandbox-operations.ts';
import type { ProcessOperations } from './processes/process-operations.ts';
import type { PoolOperations } from './pools/pool-operations.ts';
import type { EnvOperations } from './envs/env-operations.ts';
import type { TemplateOperations } from './templates/template-operations.ts';

/**
 * Every use case, one a file beside this one; the HTTP layer calls nothing else. Each rejects with
 * a Refusal for an expected "no".
 */
export interface Operations
  extends
    ApprovalOperations,
    DebugOperations,
    FileOperations,
    KeyOperations,
    RequestOperations,
    SandboxOperations,
    ProcessOperations,
    PoolOperations,
    EnvOperations,
    ManagersOperations,
    TemplateOperations {
  readonly readiness: () => Readiness;
  /** Refuses with FEATURE_DISABLED where nothing is taken down. */
  readonly listAudit: (caller: Caller, request: AuditRequest) => Promise<AuditList>;
  /** The level of the log of the replica that answers. */
  readonly getLogLevel: LogLevels['getLogLevel'];
  readonly setLogLevel: LogLevels['setLogLevel'];
  readonly shards: () => ShardReport;
  /** How each cluster of a manager stands to a global template. */
  readonly templateClusters: (name: string) => Promise<readonly TemplateClusterView[]>;
}

export interface ShardReport {
  readonly replica: string;
  readonly replicas: readonly string[];
  /** `leading`: by this replica. `replica`: who holds its lease, where that is known. */
  readonly shards: readonly {
    readonly shard: number;
    readonly leading: boolean;
    readonly replica?: string;
  }[];
}

export interface Readiness {
  readonly ready: boolean;
  /** `PART: what is wrong with it`; empty when all is well. */
  readonly problems: readonly string[];
  /** Names what works but gives less than it should. */
  readonly warnings: readonly string[];
  readonly isolation: string;
}
