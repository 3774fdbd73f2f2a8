import type { Vitals } from '../../model/sandbox.ts';
import { NEITHER, NO_POD, ownPodOf, type Entry } from './instance-facts.ts';
import type { InstanceMirrorDeps } from './instance-mirror-deps.ts';
import type { StoredSandbox } from './sandbox-resource.ts';
import type { StoredPod } from './pods/pod-resource.ts';

export type Troubles = Pick<
  InstanceMirrorDeps,
  'nodeTrouble' | 'nodeLeaves' | 'idleTrouble' | 'podsTrouble'
>;

export const vitalsOfEntry = (entry: Entry, isIdle: boolean, troubles: Troubles): Vitals => {
  const pod = ownPodOf(entry);
  if (pod) return vitalsWithPod(pod, entry.startedAt, nodeTroubleOf(pod, isIdle, troubles));
  return entry.podGone ?? (entry.sandbox ? vitalsWithoutPod(entry.sandbox, troubles) : NEITHER);
};

interface NodeTrouble {
  readonly reason: string;
  readonly state: { readonly nodeLeaving: true } | { readonly nodeInTrouble: true };
}

const nodeTroubleOf = (
  { nodeName, namespace }: StoredPod,
  isIdle: boolean,
  { nodeTrouble, nodeLeaves, idleTrouble, podsTrouble }: Troubles,
): NodeTrouble | undefined => {
  const unseen = podsTrouble?.(namespace);
  if (unseen !== undefined) return { reason: unseen, state: { nodeInTrouble: true } };
  if (nodeName === undefined) return undefined;
  const reason = nodeTrouble(nodeName) ?? (isIdle ? idleTrouble?.(nodeName) : undefined);
  if (reason === undefined) return undefined;
  return {
    reason,
    state: nodeLeaves?.(nodeName) ? { nodeLeaving: true } : { nodeInTrouble: true },
  };
};

const vitalsWithoutPod = (
  { record: { createdAt, poolOwner } }: StoredSandbox,
  { podsTrouble }: Troubles,
): Vitals => {
  const reason = podsTrouble?.(poolOwner.namespace);
  return reason === undefined
    ? NO_POD
    : { kind: 'unavailable', startedAt: createdAt, reason, nodeInTrouble: true };
};

const vitalsWithPod = (
  { vitals, endsBy, disruption }: StoredPod,
  startedAt: number | undefined,
  nodeTrouble: NodeTrouble | undefined,
): Vitals => {
  if (vitals.kind === 'gone')
    return endsBy !== undefined && disruption === undefined ? { ...vitals, removed: true } : vitals;
  const trouble =
    endsBy === undefined ? nodeTrouble?.reason : (disruption ?? 'its Pod is being deleted');
  const rest = { ...(endsBy === undefined ? {} : { endsBy }), ...endedIn(vitals) };
  if (startedAt === undefined)
    return vitals.kind === 'available' || trouble === undefined
      ? vitals
      : { kind: 'starting', reason: trouble, ...rest };
  if (trouble !== undefined)
    return { kind: 'unavailable', startedAt, reason: trouble, ...nodeTrouble?.state, ...rest };
  if (vitals.kind !== 'starting') return vitals;
  const { advice: _ofStarts, hindrance: _none, ...unready } = vitals;
  return { ...unready, kind: 'unavailable', startedAt, reason: vitals.reason ?? 'not ready' };
};

const endedIn = (vitals: Vitals): Pick<Extract<Vitals, { kind: 'starting' }>, 'endedContainers'> =>
  'endedContainers' in vitals ? { endedContainers: vitals.endedContainers } : {};
