import { podNameOf } from '../../model/identifiers.ts';
import type { Version } from '../../model/mirror/mirror-terms.ts';
import type { End, Gone, InstanceFact, InstanceRecord, Vitals } from '../../model/sandbox.ts';
import type { StoredPod } from './pods/pod-resource.ts';
import { keyOf } from '../api/api-objects.ts';
import type { StoredSandbox } from './sandbox-resource.ts';

export interface Entry {
  sandbox?: StoredSandbox;
  pod?: StoredPod;
  /** The instance's own Pod is certainly gone. */
  podGone?: Gone;
  podEnd?: End;
  /** When the instance first became ready; if not ready after that, it is unavailable. */
  startedAt?: number;
  shown?: Shown;
}

interface Shown {
  readonly revision: string | undefined;
  readonly state: InstanceRecord['state'] | undefined;
  readonly kind: Vitals['kind'];
  readonly reason: string | undefined;
  readonly remains: boolean;
}

export const shownOf = ({ record, vitals }: InstanceFact): Shown => ({
  revision: record?.revision,
  state: record?.state,
  kind: vitals.kind,
  reason: 'reason' in vitals ? vitals.reason : undefined,
  remains: vitals.kind === 'gone' && vitals.remains === true,
});

export const sameShown = (one: Shown, other: Shown): boolean =>
  one.revision === other.revision &&
  one.state === other.state &&
  one.kind === other.kind &&
  one.reason === other.reason &&
  one.remains === other.remains;

/** Only a read can find the Pod of a claimed instance that is unknown here. */
export const missesPod = (entry: Entry, { record, vitals }: InstanceFact): boolean =>
  record?.claim !== undefined &&
  !entry.podGone &&
  !ownPodOf(entry) &&
  vitals.kind !== 'unavailable';

export const sandboxVersionOf = (stored: StoredSandbox): Version<StoredSandbox> => {
  const {
    id,
    revision,
    poolOwner: { namespace },
  } = stored.record;
  return {
    key: keyOf({ namespace, name: podNameOf(id) }),
    uid: stored.uid,
    revision,
    record: stored,
  };
};

export const podVersionOf = (pod: StoredPod): Version<StoredPod> => ({
  key: keyOf({ namespace: pod.namespace, name: podNameOf(pod.id) }),
  uid: pod.uid,
  revision: pod.revision,
  record: pod,
});

/** Pending lists cannot contradict an instance with record and own Pod. */
export const isWhole = (entry: Entry): boolean =>
  entry.sandbox !== undefined && ownPodOf(entry) !== undefined;

export const DELETED_POD = {
  kind: 'gone',
  exitCode: null,
  reason: 'its Pod was deleted',
  removed: true,
} as const;

/** Nothing of a sandbox runs once its Pod is gone. */
export const withoutRemains = (gone: Gone): Gone => {
  const { remains: _remains, endsBy: _endsBy, ...rest } = gone;
  return rest;
};

/**
 * Restores the Pod's order of containers, since API servers sort maps. The template's first
 * container is the Pod's first.
 */
export const inOrder = (record: InstanceRecord, pod: StoredPod | undefined): InstanceRecord => {
  const names = pod?.containers;
  const images = record.containerImages;
  if (!names || names.join() === Object.keys(images).join()) return record;
  return {
    ...record,
    containerImages: Object.fromEntries(
      names.flatMap((name) => (images[name] === undefined ? [] : [[name, images[name]]])),
    ),
  };
};

export const NO_POD: Vitals = {
  kind: 'starting',
  reason: 'its Pod does not exist yet',
  unlaunched: true,
};

export const NEITHER: Vitals = {
  kind: 'gone',
  exitCode: null,
  reason: 'neither its record nor its Pod exists',
};

export const isOwn = (pod: StoredPod, sandbox: StoredSandbox | undefined): boolean =>
  !sandbox ||
  (pod.ownerUid === sandbox.uid && (sandbox.podUid === undefined || sandbox.podUid === pod.uid));

export const ownPodOf = ({ pod, sandbox }: Entry): StoredPod | undefined =>
  pod && isOwn(pod, sandbox) ? pod : undefined;

/**
 * A claimed record's own end wins over the Pod's. An unclaimed record that only a finalizer keeps
 * is dead, so it is not returned.
 */
export const recordOf = (
  sandbox: StoredSandbox | undefined,
  podEnd: End | undefined,
): InstanceRecord | undefined => {
  if (!sandbox) return undefined;
  const { record, terminating } = sandbox;
  if (!record.claim) return terminating ? undefined : record;
  const end = record.end ?? podEnd ?? (terminating ? DELETED : undefined);
  return end ? { ...record, state: 'ending', end } : record;
};

const DELETED: End = { reason: 'deleted', exitCode: null };

/**
 * Undefined if the Pod was neither deleted nor disrupted, or if its main process ended by itself.
 */
export const endOf = ({ vitals, endsBy, disruption }: StoredPod): End | undefined => {
  const exitCode = vitals.kind === 'gone' ? vitals.exitCode : null;
  if (disruption !== undefined && (endsBy !== undefined || vitals.kind === 'gone'))
    return { reason: 'killed', exitCode };
  return endsBy !== undefined && vitals.kind !== 'gone' ? DELETED : undefined;
};
