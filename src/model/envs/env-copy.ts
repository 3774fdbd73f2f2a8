import { isSameData } from '../../lib/plain-data.ts';
import { accessField } from '../tenant.ts';
import type { EnvMember, EnvOverrides, EnvRecord, MemberConfig, MemberState } from './env.ts';

/** An env without this annotation is not a copy, and stays untouched. */
const COPY_ANNOTATION = 'sandpool.dev/fleet-env';

export interface CopyWord {
  readonly access?: 'team';
  readonly templateRef: EnvRecord['templateRef'];
  readonly overrides: EnvOverrides;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

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

export interface EnvCopy {
  /** Changes with the spec of the copy and its members; for conditional changes. */
  readonly tag: string;
  readonly word: CopyWord;
  readonly members: readonly CopiedMember[];
}

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

export const isCopyOf = ({ word }: Pick<EnvCopy, 'word'>, { uid }: { readonly uid: string }) =>
  word.annotations[COPY_ANNOTATION] === uid;

export const isWordOf = ({ word }: Pick<EnvCopy, 'word'>, env: EnvRecord): boolean =>
  isSameData(word, copyWordOf(env));

/** Without sizing, which the env controls. */
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

export const askedOf = ({ asked, replicas }: Pick<EnvMember, 'asked' | 'replicas'>): number =>
  asked ?? replicas;

/**
 * Caps another cluster's report at the requested size: a false one could take instances from
 * members on other clusters.
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

export interface AwayPool {
  readonly synced: boolean;
  readonly leaving: boolean;
}

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
 * Keeps the env's members on its cluster, and long fields only if they match the env. A mismatch
 * replaces the rest, so a malicious cluster can't fill the memory.
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
