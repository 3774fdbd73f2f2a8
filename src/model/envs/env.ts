import type { AutoscalingGroup } from './autoscaling-group.ts';
import { contentHash } from '../../lib/content-hash.ts';
import type { EnvCondition } from './env-condition.ts';
import type { Revision } from '../identifiers.ts';
import type { UpdateStrategy } from '../pools/pool.ts';
import type { CpuAndMemory, PoolOverrides } from '../pools/pool-source.ts';
import type { RequestFingerprint } from '../request-fingerprint.ts';
import type { Tenant } from '../tenant.ts';

export const ENV_MODES = ['WarmPool'] as const;
export type EnvMode = (typeof ENV_MODES)[number];

export const MEMBER_STATES = [
  'Pending',
  'Active',
  'Saturated',
  'Draining',
  'Unreachable',
  'Error',
] as const;
export type MemberState = (typeof MEMBER_STATES)[number];

export const MOST_MEMBERS = 64;
export const MOST_GROUPS = 64;

export interface TemplateRef {
  readonly name: string;
  readonly version?: string;
}

export interface EnvOverrides extends PoolOverrides {
  readonly updateStrategy?: Partial<UpdateStrategy>;
}

export interface MemberConfig {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly instanceType?: string;
  readonly multiplier?: number;
  readonly inlineResources?: { readonly requests?: CpuAndMemory; readonly limits?: CpuAndMemory };
  readonly scalingGroup?: string;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly priority?: number;
  readonly scaleUpPriority?: number;
  readonly scaleDownPriority?: number;
  readonly updateStrategy?: Partial<UpdateStrategy>;
}

/** A member and its pool share a name and the env's namespace. */
export interface EnvMember {
  readonly name: string;
  readonly clusterId: string;
  readonly createdAt: number;
  /** Set if the request that added it had an Idempotency-Key. */
  readonly mark?: RequestFingerprint;
  /** Initial size; from then on the pool's own count applies. */
  readonly replicas: number;
  /**
   * Largest size requested of the pool on another cluster; defaults to `replicas`. Stored before
   * the request is sent.
   */
  readonly asked?: number;
  readonly config: MemberConfig;
  /** The member is removed after its pool. */
  readonly deleting: false | 'keep-running' | 'force';
}

/**
 * The leader writes `scaling`, `conditions` and the requested sizes; the owner writes all else.
 * Both share one revision, so a decision is saved on exactly the env for which it was made.
 */
export interface EnvRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  readonly owner: Tenant;
  /** Absent if only the owner has access. */
  readonly access?: 'team';
  readonly createdAt: number;
  readonly mark?: RequestFingerprint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly envDocs?: string;
  readonly templateRef: TemplateRef;
  readonly mode: EnvMode;
  readonly overrides: EnvOverrides;
  readonly members: readonly EnvMember[];
  readonly groups: readonly AutoscalingGroup[];
  /** Plain JSON by group, used only by the group machine. */
  readonly scaling: Readonly<Record<string, object>>;
  readonly conditions: readonly EnvCondition[];
  /** The record is removed after its members. */
  readonly deleting: false | 'keep-running' | 'force';
}

/** Ignores the leader's notes; used for `If-Match`. */
export const wordRevisionOf = ({
  revision: _any,
  scaling: _noted,
  conditions: _shown,
  members,
  ...word
}: EnvRecord): Revision =>
  contentHash({ ...word, members: members.map(({ asked: _size, ...member }) => member) });
