import { isSameData } from '../../lib/plain-data.ts';
import { accessField } from '../tenant.ts';
import type { EnvMember, EnvOverrides, EnvRecord, MemberConfig, MemberState } from './env.ts';

/**
 * Names in the annotations of a copy the env whose copy it is, by its uid at the manager. An env
 * without it is somebody's own, and is left alone.
 */
const COPY_ANNOTATION = 'sandpool.dev/fleet-env';

/** Describes an env as its copies have it. */
export interface CopyWord {
  readonly access?: 'team';
  readonly templateRef: EnvRecord['templateRef'];
  readonly overrides: EnvOverrides;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A member as the cluster of its pool shows it. */
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

/** An env on another cluster that has the members of that cluster, and no groups that size them. */
export interface EnvCopy {
  /** Moves with what it says of itself and of its members; for conditional changes. */
  readonly tag: string;
  readonly word: CopyWord;
  readonly members: readonly CopiedMember[];
}

/** Makes what the copies of an env say of themselves. */
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

/** Whether it is a copy of the env, and not somebody's own of its name. */
export const isCopyOf = ({ word }: Pick<EnvCopy, 'word'>, { uid }: { readonly uid: string }) =>
  word.annotations[COPY_ANNOTATION] === uid;

/** Whether it says what the env says. */
export const isWordOf = ({ word }: Pick<EnvCopy, 'word'>, env: EnvRecord): boolean =>
  isSameData(word, copyWordOf(env));

/** Makes what a copy says of a member: all but how it is sized, which its env decides. */
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

/** The most that a member's pool on another cluster was asked to have. */
export const askedOf = ({ asked, replicas }: Pick<EnvMember, 'asked' | 'replicas'>): number =>
  asked ?? replicas;

/**
 * Takes what another cluster shows of a member's pool for no more than that pool was asked to have:
 * what it claims beyond would be taken from members on other clusters.
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

/** How a member's pool on another cluster stands. */
export interface AwayPool {
  /** It is as its env asks. */
  readonly synced: boolean;
  readonly leaving: boolean;
}

/** Undefined: it has none there. */
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
 * Leaves of a copy what is worth keeping: its members that the env has on its cluster, and, of what
 * it says at length, what the env says too. All else counts as something else than the env says. So
 * a cluster that says anything fills no memory.
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
