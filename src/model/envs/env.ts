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

/** Members of one env at most. */
export const MOST_MEMBERS = 64;
/** Groups of one env at most. */
export const MOST_GROUPS = 64;

export interface TemplateRef {
  readonly name: string;
  /** Pins the env to it; unset: it follows the template. */
  readonly version?: string;
}

/** Describes what differs from the template, for all members. */
export interface EnvOverrides extends PoolOverrides {
  readonly updateStrategy?: Partial<UpdateStrategy>;
}

/** Describes what one member says for itself. */
export interface MemberConfig {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly instanceType?: string;
  readonly multiplier?: number;
  readonly inlineResources?: { readonly requests?: CpuAndMemory; readonly limits?: CpuAndMemory };
  /** The name of a group of the env; unset once that group was deleted. */
  readonly scalingGroup?: string;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly priority?: number;
  readonly scaleUpPriority?: number;
  readonly scaleDownPriority?: number;
  readonly updateStrategy?: Partial<UpdateStrategy>;
}

/**
 * A member and its pool have one name; the pool is the one of that name in the env's namespace that
 * names the env.
 */
export interface EnvMember {
  readonly name: string;
  readonly clusterId: string;
  readonly createdAt: number;
  /** Fingerprint of the request that added it, where that carried an Idempotency-Key. */
  readonly mark?: RequestFingerprint;
  /** Says what its pool is made with. From then on the pool's own count. */
  readonly replicas: number;
  /**
   * Bounds the pool on another cluster: it was asked to have so many at most; absent: `replicas`.
   * Noted before that cluster is asked.
   */
  readonly asked?: number;
  readonly config: MemberConfig;
  /** Set once it was asked to go; it goes when its pool has. */
  readonly deleting: false | 'keep-running' | 'force';
}

/**
 * An env as the store keeps it: the truth about its members, from which their pools are made and
 * kept as they should be. `scaling`, `conditions` and what members were asked to have are the
 * leader's, all else the owner's; one revision stands for both, so that a decision is saved on the
 * very env that it was made for.
 */
export interface EnvRecord {
  readonly uid: string;
  readonly revision: Revision;
  readonly name: string;
  /** Owner; its namespace is the env's. */
  readonly owner: Tenant;
  /** Absent: the owner's alone. Its members' pools have the same. */
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
  /**
   * By group: what its evaluation must not forget, and a decision that is not carried out yet.
   * Plain JSON, the group machine's alone.
   */
  readonly scaling: Readonly<Record<string, object>>;
  readonly conditions: readonly EnvCondition[];
  /** Set once deletion was asked for; the record goes when its members have. */
  readonly deleting: false | 'keep-running' | 'force';
}

/**
 * Moves with what the owner says of the env, and not with what its leader notes there: what an
 * `If-Match` is meant for.
 */
export const wordRevisionOf = ({
  revision: _any,
  scaling: _noted,
  conditions: _shown,
  members,
  ...word
}: EnvRecord): Revision =>
  contentHash({ ...word, members: members.map(({ asked: _size, ...member }) => member) });
