import { podNameOf, type InstanceId } from '../../model/identifiers.ts';
import { Mirror } from '../../model/mirror/mirror.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import { PodMirrors } from './pods/pod-mirrors.ts';
import type { StoredPod } from './pods/pod-resource.ts';
import { keyOf } from '../api/api-objects.ts';
import { Slices } from '../../lib/slices.ts';
import type { LaterSandbox } from './later-sandbox.ts';
import type { StoredSandbox } from './sandbox-resource.ts';
import { vitalsOfEntry } from './shown-vitals.ts';
import {
  type Entry,
  sandboxVersionOf,
  podVersionOf,
  isWhole,
  DELETED_POD,
  withoutRemains,
  inOrder,
  isOwn,
  ownPodOf,
  recordOf,
  endOf,
  missesPod,
  sameShown,
  shownOf,
} from './instance-facts.ts';
import type { InstanceMirrorDeps } from './instance-mirror-deps.ts';

const SLICE_MS = 8;

/**
 * Records and Pods arrive separately, and either may be ahead: one without the other means nothing.
 * Each kind's mirror orders its versions, whether they come from a watch, an uncached read, or the
 * answer to a write.
 */
export class InstanceMirror {
  readonly sandboxes: Mirror<StoredSandbox | LaterSandbox>;
  readonly pods: PodMirrors;
  readonly #deps: InstanceMirrorDeps;
  readonly #entries = new Map<InstanceId, Entry>();
  readonly #byNode = new Map<string, Set<InstanceId>>();
  readonly #later = new Set<string>();
  #reporting = false;

  constructor(deps: InstanceMirrorDeps) {
    this.#deps = deps;
    this.sandboxes = new Mirror({
      report: ({ type, key, record, quietly, afresh }) => {
        const isLater = 'laterFormat' in record;
        this.#noteLater(key, type === 'put' && isLater ? record : undefined);
        if (type === 'put') this.#deps.recordIn?.(namespaceOfKey(key));
        const id = isLater ? record.id : record.record.id;
        if (id === undefined) return;
        if (type === 'put' && !isLater) this.#entryOf(id).sandbox = record;
        else delete this.#entries.get(id)?.sandbox;
        this.#changed(id, { quietly, afresh });
      },
    });
    this.pods = new PodMirrors({
      report: ({ type, record, afresh }) => {
        if (type === 'put') this.#showPod(record, afresh);
        else this.#losePod(record);
        if (type === 'gone' || record.vitals.kind === 'gone') this.#deps.podGone?.(record.uid);
      },
      mayStand: (pod) => this.#mayStand(pod),
      isWatched: ({ isUnlabelled }) => isUnlabelled !== true,
    });
  }

  /**
   * Call once both kinds have synced. Reports everything once, a slice of the event loop at a time,
   * and then each change. Earlier, an instance is reported as soon as its record and its Pod are
   * known.
   */
  async begin(): Promise<void> {
    this.#reporting = true;
    await this.#forEach((id, entry) => {
      if (!isWhole(entry)) this.#changed(id);
    });
  }

  sandbox(id: InstanceId): StoredSandbox | undefined {
    return this.#entries.get(id)?.sandbox;
  }

  pod(id: InstanceId): StoredPod | undefined {
    const entry = this.#entries.get(id);
    return entry && ownPodOf(entry);
  }

  fact(id: InstanceId): InstanceFact | undefined {
    const entry = this.#entries.get(id);
    return entry && this.#factOf(id, entry);
  }

  isPodGone(id: InstanceId): boolean {
    return this.#entries.get(id)?.podGone !== undefined;
  }

  /** `quietly`: not reported, since the writer knows it. */
  putSandbox(stored: StoredSandbox, options: { readonly quietly?: boolean } = {}): void {
    this.sandboxes.learn(sandboxVersionOf(stored), options);
  }

  /** Call the returned function with the created record. */
  createsSandbox(): (made: StoredSandbox) => void {
    const made = this.sandboxes.creates();
    return (stored) => {
      made(sandboxVersionOf(stored));
    };
  }

  dropSandbox(id: InstanceId, uid: string): void {
    const known = this.sandbox(id);
    if (known) this.sandboxes.removed(sandboxVersionOf(known).key, { uid });
  }

  putPod(pod: StoredPod): void {
    this.pods.in(pod.namespace).learn(podVersionOf(pod));
  }

  dropPod(pod: StoredPod): void {
    this.pods.in(pod.namespace).removed(podVersionOf(pod).key, { uid: pod.uid });
  }

  lostPod({
    record: {
      id,
      poolOwner: { namespace },
    },
    podUid,
  }: StoredSandbox): void {
    if (podUid !== undefined)
      this.pods.in(namespace).lost(keyOf({ namespace, name: podNameOf(id) }), podUid);
  }

  /** Call the returned functions with the results; undefined if the object does not exist. */
  look(
    namespace: string,
    id: InstanceId,
  ): {
    foundSandbox(stored: StoredSandbox | undefined): void;
    foundPod(pod: StoredPod | undefined): void;
  } {
    const key = keyOf({ namespace, name: podNameOf(id) });
    const [sandbox, pod] = [this.sandboxes.read(key), this.pods.in(namespace).read(key)];
    return {
      foundSandbox: (found) => {
        sandbox(found && sandboxVersionOf(found));
      },
      foundPod: (found) => {
        pod(found && podVersionOf(found));
      },
    };
  }

  #noteLater(key: string, record: LaterSandbox | undefined): void {
    if (record) this.#later.add(key);
    else if (!this.#later.delete(key)) return;
    this.#deps.laterSandbox?.(key, record);
  }

  #showPod(pod: StoredPod, afresh?: true): void {
    if (pod.ownerUid === undefined) return;
    // Only another party's finalizer keeps the object.
    if (pod.isForced) return this.#losePod(pod);
    const entry = this.#entryOf(pod.id);
    this.#placeOnNode(pod.id, entry.pod?.nodeName, pod.nodeName);
    entry.pod = pod;
    if (afresh) {
      delete entry.podGone;
      delete entry.podEnd;
    }
    if (pod.vitals.kind === 'available') entry.startedAt ??= pod.vitals.startedAt;
    this.#changed(pod.id, { afresh });
  }

  #losePod(pod: StoredPod): void {
    const { id, vitals: last } = pod;
    const entry = this.#entries.get(id);
    if (!entry || (entry.pod && entry.pod.uid !== pod.uid)) return;
    const wasOwn = isOwn(pod, entry.sandbox);
    this.#placeOnNode(id, entry.pod?.nodeName, undefined);
    delete entry.pod;
    if (wasOwn && !entry.podGone) {
      const end = endOf({ ...pod, endsBy: pod.endsBy ?? 0 });
      entry.podGone =
        last.kind === 'gone'
          ? withoutRemains(last)
          : pod.disruption === undefined
            ? DELETED_POD
            : { kind: 'gone', exitCode: null, reason: pod.disruption };
      if (end) entry.podEnd = end;
    }
    this.#changed(id);
  }

  /**
   * A Pod that left the watch may only have lost the label, unless it was ending or without a valid
   * record.
   */
  #mayStand({ id, endsBy, nodeName, vitals }: StoredPod): boolean {
    const sandbox = this.sandbox(id);
    return (
      endsBy === undefined &&
      nodeName !== undefined &&
      vitals.kind !== 'gone' &&
      sandbox !== undefined &&
      !sandbox.terminating
    );
  }

  foundNoPod(id: InstanceId): void {
    const entry = this.#entries.get(id);
    if (!entry || ownPodOf(entry)) return;
    entry.podGone ??= { kind: 'gone', exitCode: null, reason: 'its Pod is gone' };
    this.#changed(id);
  }

  nodeChanged(nodeName: string): void {
    for (const id of this.#byNode.get(nodeName) ?? []) this.#changed(id);
  }

  namespaces(): ReadonlySet<string> {
    const namespaces = new Set<string>();
    for (const key of this.sandboxes.keys())
      if (this.sandboxes.get(key) !== undefined) namespaces.add(namespaceOfKey(key));
    return namespaces;
  }

  namespaceChanged(namespace: string): void {
    for (const [id, { sandbox }] of this.#entries)
      if (sandbox?.record.poolOwner.namespace === namespace) this.#changed(id);
  }

  async #forEach(look: (id: InstanceId, entry: Entry) => void): Promise<void> {
    const slices = new Slices(SLICE_MS);
    for (const id of [...this.#entries.keys()]) {
      if (slices.usedUp) await slices.next();
      const entry = this.#entries.get(id);
      if (entry) look(id, entry);
    }
  }

  #entryOf(id: InstanceId): Entry {
    let entry = this.#entries.get(id);
    if (!entry) this.#entries.set(id, (entry = {}));
    return entry;
  }

  #placeOnNode(id: InstanceId, from: string | undefined, to: string | undefined): void {
    if (from === to) return;
    const left = from === undefined ? undefined : this.#byNode.get(from);
    left?.delete(id);
    if (from !== undefined && left?.size === 0) this.#byNode.delete(from);
    if (to === undefined) return;
    const there = this.#byNode.get(to);
    if (there) there.add(id);
    else this.#byNode.set(to, new Set([id]));
  }

  #changed(
    id: InstanceId,
    { quietly, afresh }: { readonly quietly?: true; readonly afresh?: true } = {},
  ): void {
    const entry = this.#entries.get(id);
    if (!entry || (!this.#reporting && !isWhole(entry))) return;
    const fact = this.#factOf(id, entry);
    const before = entry.shown;
    const shown = shownOf(fact);
    if (before && sameShown(before, shown)) return;
    entry.shown = shown;
    if (!entry.sandbox && !entry.pod) this.#entries.delete(id);
    if (!quietly && (before || fact.record)) this.#deps.report(afresh ? { ...fact, afresh } : fact);
    if (this.#reporting && missesPod(entry, fact)) this.#deps.missesPod(id);
  }

  #factOf(id: InstanceId, entry: Entry): InstanceFact {
    const pod = ownPodOf(entry);
    const record = recordOf(entry.sandbox, pod ? endOf(pod) : entry.podEnd);
    return {
      id,
      record: record && inOrder(record, pod),
      vitals: vitalsOfEntry(entry, record?.claim === undefined, this.#deps),
    };
  }
}

const namespaceOfKey = (key: string): string => key.slice(0, key.indexOf('/'));
