import { idOfPodName } from '../../../src/model/identifiers.ts';
import type {
  ApprovalState,
  ClaimState,
  EnvState,
  PodState,
  PoolState,
  RecordState,
  StoreChange,
} from './history.ts';

interface Meta {
  readonly uid: string;
  readonly namespace?: string;
  readonly deletionTimestamp?: string;
  readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[];
}
interface Stored<Spec, Status = unknown> {
  readonly metadata: Meta;
  readonly spec: Spec;
  readonly status?: Status;
}
interface Condition {
  readonly type: string;
  readonly status: string;
}

/** Undefined for keys that do not matter to a run. */
export const changeOf = (
  key: string,
  revision: number,
  text: string | undefined,
): StoreChange | undefined => {
  const [, , a = '', b = '', c = '', d = ''] = key.split('/');
  if (a === 'sandpool.dev' && b === 'sandboxes')
    return {
      kind: 'sandbox',
      revision,
      name: idOfPodName(d) ?? d,
      ...withState(text, recordState),
    };
  if (a === 'sandpool.dev' && b === 'sandboxpools')
    return {
      kind: 'pool',
      revision,
      namespace: c,
      name: d,
      ...withState(text, (pool) => poolState(c, pool)),
    };
  if (a === 'sandpool.dev' && b === 'sandboxenvs')
    return { kind: 'env', revision, namespace: c, name: d, ...withState(text, envState) };
  if (a === 'sandpool.dev' && b === 'approvals')
    return {
      kind: 'approval',
      revision,
      namespace: c,
      name: d,
      ...withState(text, (approval) => approvalState(c, approval)),
    };
  if (a === 'pods')
    return { kind: 'pod', revision, name: idOfPodName(c) ?? c, ...withState(text, podState) };
  if (a === 'minions') return { kind: 'node', revision, name: b, ...withState(text, nodeState) };
  return undefined;
};

const withState = <S>(
  text: string | undefined,
  read: (value: unknown) => S,
): { readonly state?: S } => (text === undefined ? {} : { state: read(JSON.parse(text)) });

interface StoredClaim {
  readonly team: string;
  readonly user: string;
  readonly claimedAt: string;
  readonly idleTimeoutMs?: number;
  readonly mark?: string;
}

const recordState = (value: unknown): RecordState => {
  const { metadata, spec } = value as Stored<{
    readonly poolUid: string;
    readonly podUid?: string;
    readonly claim?: StoredClaim;
  }>;
  const { poolUid, podUid, claim } = spec;
  const { namespace = '' } = metadata;
  return {
    uid: metadata.uid,
    namespace,
    poolUid,
    terminating: metadata.deletionTimestamp !== undefined,
    ...(podUid === undefined ? {} : { podUid }),
    ...(claim ? { claim: claimState(namespace, claim) } : {}),
  };
};

const claimState = (
  namespace: string,
  { team, user, claimedAt, idleTimeoutMs, mark }: StoredClaim,
): ClaimState => ({ owner: `${namespace}/${team}/${user}`, claimedAt, idleTimeoutMs, mark });

const podState = (value: unknown): PodState => {
  const { metadata, spec, status } = value as Stored<
    { readonly nodeName?: string },
    { readonly phase?: string; readonly conditions?: readonly Condition[] }
  >;
  const isReady = status?.phase === 'Running' && holds(status.conditions, 'Ready');
  return {
    uid: metadata.uid,
    ownerUid: metadata.ownerReferences?.find(({ kind }) => kind === 'Sandbox')?.uid,
    node: spec.nodeName,
    terminating: metadata.deletionTimestamp !== undefined,
    vitals:
      status?.phase === 'Succeeded' || status?.phase === 'Failed'
        ? 'over'
        : isReady
          ? 'ready'
          : 'starting',
  };
};

interface Resolved {
  readonly uid: string;
  readonly team: string;
  readonly user: string;
  readonly deleting: string;
}
/** The daemon's own fields stand beside the spec, or in the status. */
interface Resolving {
  readonly resolved?: Resolved;
  readonly status?: { readonly resolved?: Resolved };
}

const poolState = (namespace: string, value: unknown): PoolState => {
  const {
    metadata,
    spec,
    resolved: beside,
    status,
  } = value as Stored<{ readonly replicas: number }> & Resolving;
  const resolved = status?.resolved ?? beside;
  return {
    owner: resolved ? `${namespace}/${resolved.team}/${resolved.user}` : '',
    replicas: spec.replicas,
    deleting: metadata.deletionTimestamp !== undefined || isEnding(resolved),
    ...(resolved ? { poolUid: resolved.uid } : {}),
  };
};

const isEnding = (resolved: Resolved | undefined): boolean =>
  resolved !== undefined && resolved.deleting !== 'none';

export const ENV_LABEL = 'turn';

const envState = (value: unknown): EnvState => {
  const {
    metadata,
    spec,
    resolved: beside,
    status,
  } = value as Stored<{ readonly labels?: Readonly<Record<string, string>> }> & Resolving;
  const label = spec.labels?.[ENV_LABEL];
  return {
    deleting: metadata.deletionTimestamp !== undefined || isEnding(status?.resolved ?? beside),
    ...(label === undefined ? {} : { label }),
  };
};

interface StoredApproval extends Omit<ApprovalState, 'owner' | 'keyId' | 'expiresAt' | 'use'> {
  readonly principal: { readonly team: string; readonly user: string; readonly keyId: string };
  readonly expiresAt: string;
  readonly use?: Omit<NonNullable<ApprovalState['use']>, 'at'> & { readonly at: string };
}

const approvalState = (namespace: string, value: unknown): ApprovalState => {
  const {
    principal: { team, user, keyId },
    operation,
    path,
    status,
    expiresAt,
    use,
  } = (value as Stored<StoredApproval>).spec;
  return {
    owner: `${namespace}/${team}/${user}`,
    keyId,
    operation,
    path,
    status,
    expiresAt: Date.parse(expiresAt),
    ...(use ? { use: { ...use, at: Date.parse(use.at) } } : {}),
  };
};

const nodeState = (value: unknown): { readonly takesWork: boolean } => {
  const { spec, status } = value as Stored<
    { readonly unschedulable?: boolean },
    { readonly conditions?: readonly Condition[] }
  >;
  return { takesWork: spec.unschedulable !== true && holds(status?.conditions, 'Ready') };
};

const holds = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  conditions?.find((condition) => condition.type === type)?.status === 'True';
