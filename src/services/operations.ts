import type { ApprovalOperations } from './approvals/approval-operations.ts';
import type { DebugOperations, ReplicaOperations } from './debug/debug-operations.ts';
import type { ManagersOperations, TemplateClusterView } from './fleet-views.ts';
import type { FileOperations } from './files/file-operations.ts';
import type { KeyOperations } from './keys/key-operations.ts';
import type { RequestOperations } from '../actors/request/request-operations.ts';
import type { SandboxOperations } from '../actors/sandbox/commands/sandbox-operations.ts';
import type { ProcessOperations } from './processes/process-operations.ts';
import type { PoolOperations } from '../actors/pool/commands/pool-operations.ts';
import type { EnvOperations } from '../actors/env/commands/env-operations.ts';
import type { TemplateOperations } from './templates/template-operations.ts';

/** The HTTP layer calls nothing else. Each rejects with a Refusal for an expected "no". */
export interface Operations
  extends
    ApprovalOperations,
    DebugOperations,
    ReplicaOperations,
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
  readonly templateClusters: (name: string) => Promise<readonly TemplateClusterView[]>;
}

export interface Readiness {
  readonly ready: boolean;
  /** `PART: PROBLEM`. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly isolation: string;
}
