import type { AutoscalingGroup, GroupChange } from '../../../model/envs/autoscaling-group.ts';
import type {
  EnvMode,
  EnvOverrides,
  EnvRecord,
  MemberConfig,
  TemplateRef,
} from '../../../model/envs/env.ts';
import type { IfMatch } from '../../../model/if-match.ts';
import type { Patch } from './merge-patch.ts';
import type { RegistryCredentials } from '../../../model/pools/pool-source.ts';
import type { RequestFingerprint } from '../../../model/request-fingerprint.ts';
import type { CompletedDecision } from '../../../model/envs/scaling-decision.ts';
import type { Access, Caller } from '../../../model/tenant.ts';
import type { ClaimPlace } from '../claim-places.ts';
import type { EnvView, MemberView, Page, PageRequest } from '../../views.ts';

interface MemberName {
  readonly env: string;
  readonly member: string;
}

interface GroupName {
  readonly env: string;
  readonly group: string;
}

export interface EnvOperations {
  /** See claim-places.ts. */
  readonly claimPlaces: (caller: Caller, name: string) => readonly ClaimPlace[];
  readonly createEnv: (caller: Caller, request: CreateEnvRequest) => Promise<EnvView>;
  /**
   * Undefined if no earlier request with this fingerprint created one. Refuses with
   * IDEMPOTENCY_KEY_REUSED if the body differs.
   */
  readonly findEnvByKey: (
    caller: Caller,
    name: string,
    mark: RequestFingerprint,
  ) => Promise<EnvView | undefined>;
  readonly getEnv: (caller: Caller, name: string) => Promise<EnvView>;
  readonly listEnvs: (
    caller: Caller,
    filter: { readonly all: boolean },
    page: PageRequest,
  ) => Promise<Page<EnvView>>;
  readonly replaceEnv: (caller: Caller, name: string, change: EnvReplacement) => Promise<EnvView>;
  readonly patchEnv: (caller: Caller, name: string, change: EnvPatchRequest) => Promise<EnvView>;
  readonly deleteEnv: (
    caller: Caller,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<EnvView>;
  /** Refuses with ENV_SYNC_PARTIAL. */
  readonly syncEnv: (caller: Caller, name: string) => Promise<EnvView>;
  readonly addMember: (
    caller: Caller,
    envName: string,
    request: AddMemberRequest,
  ) => Promise<MemberView>;
  readonly findMemberByKey: (
    caller: Caller,
    envName: string,
    mark: RequestFingerprint,
  ) => Promise<MemberView | undefined>;
  readonly listMembers: (caller: Caller, envName: string) => Promise<readonly MemberView['pool'][]>;
  readonly updateMember: (
    caller: Caller,
    member: MemberName,
    change: MemberChange,
  ) => Promise<MemberView>;
  readonly deleteMember: (
    caller: Caller,
    member: MemberName,
    options: { readonly force: boolean },
  ) => Promise<{ readonly name: string; readonly namespace: string }>;
  readonly listGroups: (caller: Caller, envName: string) => Promise<readonly AutoscalingGroup[]>;
  readonly getGroup: (caller: Caller, envName: string, groupName: string) => Promise<GroupView>;
  /** Newest first. */
  readonly groupDecisions: (
    caller: Caller,
    envName: string,
    groupName: string,
  ) => Promise<readonly CompletedDecision[]>;
  readonly updateGroup: (
    caller: Caller,
    group: GroupName,
    change: GroupChange & { readonly ifMatch?: IfMatch },
  ) => Promise<GroupView>;
  readonly deleteGroup: (caller: Caller, envName: string, groupName: string) => Promise<void>;
}

interface EnvSpec {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly access?: Access;
  readonly templateRef: TemplateRef;
  readonly overrides: EnvOverrides;
  /** Secrets. Replaces all earlier ones. */
  readonly registries?: readonly RegistryCredentials[];
}

export interface CreateEnvRequest extends EnvSpec {
  readonly name: string;
  readonly mode: EnvMode;
  readonly envDocs?: string;
  readonly mark?: RequestFingerprint;
}

/** Name and mode can't change. */
export interface EnvReplacement extends EnvSpec {
  readonly name?: string;
  readonly mode?: EnvMode;
  readonly ifMatch?: IfMatch;
}

/** A JSON merge patch (RFC 7396). */
export interface EnvPatchRequest {
  readonly patch: {
    readonly overrides?: Patch | null;
    readonly labels?: Patch | null;
    readonly annotations?: Patch | null;
    readonly envDocs?: string | null;
    readonly access?: Access | null;
  };
  readonly registries?: readonly RegistryCredentials[];
  readonly ifMatch?: IfMatch;
}

export interface AddMemberRequest {
  readonly name?: string;
  readonly clusterId?: string;
  readonly replicas?: number;
  readonly config: MemberConfig;
  readonly mark?: RequestFingerprint;
}

/** Omitted fields stay. */
export interface MemberChange {
  readonly replicas?: number;
  readonly config: MemberConfig;
  readonly ifMatch?: IfMatch;
}

export interface GroupView {
  readonly env: EnvRecord;
  readonly group: AutoscalingGroup;
}
