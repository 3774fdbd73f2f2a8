import type {
  ApprovalState,
  ClaimState,
  EnvState,
  PodState,
  PoolState,
  RecordState,
  StoreChange,
} from './history.ts';

/**
 * `booting`: scheduler and node must start its Pod. `idle`: claimable. `ended`: nothing of it runs,
 * or will.
 */
export type LifeState = 'starting' | 'booting' | 'idle' | 'unavailable' | 'running' | 'ended';

/** Excludes `to`; Infinity is the end of the log. */
export interface Span {
  readonly state: LifeState;
  readonly from: number;
  readonly to: number;
}

export interface ClaimSeen extends ClaimState {
  readonly revision: number;
}

export interface Life {
  readonly id: string;
  readonly poolUid: string;
  readonly namespace: string;
  /** Without its own Pod, nothing ever ran. */
  readonly hadPod: boolean;
  readonly spans: readonly Span[];
  /** At most one, if all is well. */
  readonly claims: readonly ClaimSeen[];
  readonly ended?: number;
}

/** By its name and each of its uids. */
export interface PoolLife {
  readonly namespace: string;
  readonly name: string;
  readonly states: readonly { readonly revision: number; readonly state?: PoolState }[];
}

export interface Lives {
  readonly instances: ReadonlyMap<string, Life>;
  readonly pools: ReadonlyMap<string, PoolLife>;
  readonly envs: ReadonlyMap<string, EnvLife>;
  readonly approvals: ReadonlyMap<string, ApprovalLife>;
}

export interface ApprovalLife {
  readonly id: string;
  readonly states: readonly { readonly revision: number; readonly state?: ApprovalState }[];
}

export interface EnvLife {
  readonly states: readonly { readonly revision: number; readonly state?: EnvState }[];
}

interface Growing {
  id: string;
  poolUid: string;
  namespace: string;
  record?: RecordState;
  pod?: PodState;
  hadPod: boolean;
  spans: { state: LifeState; from: number; to: number }[];
  claims: ClaimSeen[];
  ended?: number;
}

export const livesOf = (changes: readonly StoreChange[]): Lives => {
  const instances = new Map<string, Growing>();
  const pools = new Map<
    string,
    { namespace: string; name: string; states: { revision: number; state?: PoolState }[] }
  >();
  const envs = new Map<string, { states: { revision: number; state?: EnvState }[] }>();
  const approvals = new Map<
    string,
    { id: string; states: { revision: number; state?: ApprovalState }[] }
  >();
  const nodes = new Map<string, boolean>();
  const onNode = new Map<string, Set<Growing>>();
  const look = (life: Growing, revision: number): void => {
    const state = stateOf(life, (node) => nodes.get(node) ?? true);
    const last = life.spans.at(-1);
    if (last?.state !== state) {
      if (last) last.to = revision;
      life.spans.push({ state, from: revision, to: Infinity });
    }
    if (state === 'ended' && life.claims.length > 0) life.ended ??= revision;
  };
  for (const change of changes) {
    const { revision, name } = change;
    if (change.kind === 'node') {
      nodes.set(name, change.state?.takesWork ?? false);
      for (const life of onNode.get(name) ?? []) look(life, revision);
    } else if (change.kind === 'approval') {
      const key = `${change.namespace}/${name}`;
      const approval = approvals.get(key) ?? { id: name, states: [] };
      approvals.set(key, approval);
      approval.states.push({ revision, state: change.state });
    } else if (change.kind === 'env') {
      const key = `${change.namespace}/${change.name}`;
      const env = envs.get(key) ?? { states: [] };
      envs.set(key, env);
      env.states.push({ revision, state: change.state });
    } else if (change.kind === 'pool') {
      const key = `${change.namespace}/${name}`;
      const pool = pools.get(key) ?? { namespace: change.namespace, name, states: [] };
      pools.set(key, pool);
      pool.states.push({ revision, state: change.state });
    } else {
      const life = instances.get(name) ?? {
        id: name,
        poolUid: '',
        namespace: '',
        hadPod: false,
        spans: [],
        claims: [],
      };
      if (!instances.has(name)) instances.set(name, life);
      if (change.kind === 'pod') {
        if (life.pod?.node !== undefined) onNode.get(life.pod.node)?.delete(life);
        if (change.state) life.pod = change.state;
        else delete life.pod;
        if (change.state?.node !== undefined)
          onNode.set(change.state.node, (onNode.get(change.state.node) ?? new Set()).add(life));
      } else {
        learnRecord(life, change.state, revision);
      }
      look(life, revision);
    }
  }
  return {
    instances: new Map([...instances].filter(([, { poolUid }]) => poolUid !== '')),
    pools,
    envs,
    approvals,
  };
};

const learnRecord = (life: Growing, state: RecordState | undefined, revision: number): void => {
  if (!state) {
    delete life.record;
    return;
  }
  life.record = state;
  life.poolUid = state.poolUid;
  life.namespace = state.namespace;
  const { claim } = state;
  const last = life.claims.at(-1);
  if (
    claim &&
    (last?.owner !== claim.owner || last.claimedAt !== claim.claimedAt || last.mark !== claim.mark)
  )
    life.claims.push({ revision, ...claim });
};

const stateOf = (life: Growing, takesWork: (node: string) => boolean): LifeState => {
  const { record } = life;
  if (!record) return 'ended';
  const pod =
    life.pod?.ownerUid === record.uid &&
    (record.podUid === undefined || record.podUid === life.pod.uid)
      ? life.pod
      : undefined;
  if (pod) life.hadPod = true;
  if (record.claim) return pod && pod.vitals !== 'over' && !pod.terminating ? 'running' : 'ended';
  if (record.terminating || pod?.vitals === 'over' || (!pod && life.hadPod)) return 'ended';
  if (pod?.vitals !== 'ready') return pod && !pod.terminating ? 'booting' : 'starting';
  return pod.terminating || (pod.node !== undefined && !takesWork(pod.node))
    ? 'unavailable'
    : 'idle';
};
