import { isSameData } from '../../lib/plain-data.ts';
import { accessField } from '../tenant.ts';
import type { EnvMember, EnvOverrides, EnvRecord, MemberConfig, MemberState } from './env.ts';

/**
 * Annotation of a copy with the uid of its env at the manager. An env without it is not a copy, and
 * stays untouched.
 */
const COPY_ANNOTATION = 'sandpool.dev/fleet-env';

/** Spec of an env's copies. */
export interface CopyWord {
  readonly access?: 'team';
  readonly templateRef: EnvRecord['templateRef'];
  readonly overrides: EnvOverrides;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A member as its pool's cluster presents it. */
export interface CopiedMember {
  readonly name: string;
  readonly config: MemberConfig;
  readonly state: MemberState;
  readonly idle: number;
  readonly running: number;
  readonly desired: number;
  readonly current: number;
  readonly pending: number;
  readonly headroom: number;
  readonly updateRevision?: string;
  readonly updated: number;
  readonly templateVersion?: string;
}

/** An env on another cluster with that cluster's members, and without autoscaling groups. */
export interface EnvCopy {
  /** Changes with the spec of the copy and its members; for conditional changes. */
  readonly tag: string;
  readonly word: CopyWord;
  readonly members: readonly CopiedMember[];
}

/** Builds the spec of an env's copies. */
export const copyWordOf = ({
  uid,
  access,
  templateRef,
  overrides: { imagePullSecretConfigured: _notCopied, ...overrides },
  labels,
  annotations,
}: Pick<
  EnvRecord,
  'uid' | 'access' | 'templateRef' | 'overrides' | 'labels' | 'annotations'
>): CopyWord => ({
  ...accessField(access),
  templateRef,
  overrides,
  labels,
  annotations: { ...annotations, [COPY_ANNOTATION]: uid },
});

/** Whether it is a copy of the env, and not an unrelated env of the same name. */
export const isCopyOf = ({ word }: Pick<EnvCopy, 'word'>, { uid }: { readonly uid: string }) =>
  word.annotations[COPY_ANNOTATION] === uid;

/** Whether the copy's spec matches the env. */
export const isWordOf = ({ word }: Pick<EnvCopy, 'word'>, env: EnvRecord): boolean =>
  isSameData(word, copyWordOf(env));

/** Builds a copy's config of a member, without sizing, which the env controls. */
export const copiedConfigOf = ({
  config: {
    scalingGroup: _group,
    minReplicas: _least,
    maxReplicas: _most,
    priority: _priority,
    scaleUpPriority: _up,
    scaleDownPriority: _down,
    ...config
  },
}: Pick<EnvMember, 'config'>): MemberConfig => config;

/** Largest size requested of a member's pool on another cluster. */
export const askedOf = ({ asked, replicas }: Pick<EnvMember, 'asked' | 'replicas'>): number =>
  asked ?? replicas;

/**
 * Caps another cluster's report of a member's pool at the requested size. Otherwise a false report
 * could take instances from members on other clusters.
 */
export const countedOf = (copied: CopiedMember, member: EnvMember): CopiedMember => {
  const most = askedOf(member);
  const running = Math.min(copied.running, most);
  return {
    ...copied,
    running,
    desired: Math.min(copied.desired, most),
    idle: Math.min(copied.idle, most - running),
  };
};

/** State of a member's pool on another cluster. */
export interface AwayPool {
  /** Matches the env's request. */
  readonly synced: boolean;
  readonly leaving: boolean;
}

/** Undefined if the member has no pool there. */
export const awayPoolOf = (
  copy: EnvCopy | undefined,
  env: EnvRecord,
  member: EnvMember,
): AwayPool | undefined => {
  const copied = copy && copiedIn(copy, member.name);
  if (!copied) return undefined;
  return {
    leaving: copied.state === 'Draining',
    synced: isWordOf(copy, env) && isConfigOf(copied, member) && copied.desired <= askedOf(member),
  };
};

const SAYS_OTHERWISE: MemberConfig = { scalingGroup: '' };

/**
 * Reduces a copy to what is needed: the env's members on its cluster, and long fields only if they
 * match the env. All other content is replaced by a mismatch. So a malicious cluster can't fill the
 * memory.
 */
export const keptOf = (copy: EnvCopy, env: EnvRecord, clusterId: string): EnvCopy => {
  const listed = env.members.filter((member) => member.clusterId === clusterId);
  const members = listed.flatMap(({ name }) => copiedIn(copy, name) ?? []);
  const { annotations } = copyWordOf({ ...env, annotations: {} });
  const otherwise = { templateRef: { name: '' }, overrides: {}, labels: {}, annotations };
  return {
    tag: copy.tag,
    word: isWordOf(copy, env) ? copy.word : otherwise,
    members: members.map((copied) => {
      const member = listed.find(({ name }) => name === copied.name);
      return member && isConfigOf(copied, member) ? copied : { ...copied, config: SAYS_OTHERWISE };
    }),
  };
};

const isConfigOf = ({ config }: CopiedMember, member: EnvMember): boolean =>
  isSameData(config, copiedConfigOf(member));

export const copiedIn = (
  { members }: Pick<EnvCopy, 'members'>,
  name: string,
): CopiedMember | undefined => members.find((each) => each.name === name);
