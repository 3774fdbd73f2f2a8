import type { InstanceId } from '../model/identifiers.ts';
import { RecentSet } from '../model/recent-set.ts';
import type { End, InstanceFact, InstanceRecord, Vitals } from '../model/sandbox.ts';
import type { StoredPod } from './pod-resource.ts';
import { compareVersions } from './resource-version.ts';
import { Slices } from './slices.ts';
import type { StoredSandbox } from './sandbox-resource.ts';

interface Entry {
  sandbox?: StoredSandbox;
  pod?: StoredPod;
  /** Its own Pod was there, and is certainly no more. */
  podGone?: Extract<Vitals, { kind: 'gone' }>;
  /** What its end says, where that is known. */
  podEnd?: End;
  /** When it was first seen ready; what is not ready after that is unavailable. */
  startedAt?: number;
  /** What was last reported. */
  shown?: { readonly revision: string | undefined; readonly state: InstanceRecord['state'] | undefined; readonly kind: Vitals['kind']; readonly reason: string | undefined };
}

const SLICE_MS = 8;

export interface InstanceMirrorDeps {
  readonly report: (fact: InstanceFact) => void;
  /** A claimed record has no Pod here: only an uncached look tells whether there is none. */
  readonly missesPod: (id: InstanceId) => void;
  /** Of the node, where what runs on it can't be relied on. */
  readonly nodeTrouble: (nodeName: string) => string | undefined;
}

/** More than go in the time by which a watch may be late. */
const REMEMBERED_DEAD = 8_192;

/**
 * Records and Pods as they were last seen, put together into facts. The two kinds come apart and either may be ahead: a
 * record without a Pod, or a Pod without a record, means nothing by itself. Nothing older than what is known is taken, nor
 * anything of an object that is known to be no more: its own removal is known before the watch tells of what came before it.
 */
export class InstanceMirror {
  readonly #deps: InstanceMirrorDeps;
  readonly #entries = new Map<InstanceId, Entry>();
  readonly #byNode = new Map<string, Set<InstanceId>>();
  /** By uid. */
  readonly #dead = new RecentSet(REMEMBERED_DEAD);
  #reporting = false;

  constructor(deps: InstanceMirrorDeps) { this.#deps = deps; }

  /**
   * Both kinds have synced: reports each change from now on, and everything once by the time it resolves, a slice of the event
   * loop at a time. Before, an instance is reported as soon as its record and its Pod are both there, which says enough.
   */
  async begin(): Promise<void> {
    this.#reporting = true;
    await this.#forEach((id, entry) => { if (!isWhole(entry)) this.#changed(id); });
  }

  sandbox(id: InstanceId): StoredSandbox | undefined { return this.#entries.get(id)?.sandbox; }

  /** The Pod that belongs to the record, as far as is known. */
  pod(id: InstanceId): StoredPod | undefined {
    const entry = this.#entries.get(id);
    return entry && ownPodOf(entry);
  }

  /** As it stands; undefined where nothing is known of it. */
  fact(id: InstanceId): InstanceFact | undefined {
    const entry = this.#entries.get(id);
    return entry && this.#factOf(id, entry);
  }

  /** It is certain that the instance's own Pod is no more. */
  isPodGone(id: InstanceId): boolean { return this.#entries.get(id)?.podGone !== undefined; }

  /** `quietly`: whoever wrote it knows what it says. */
  putSandbox(stored: StoredSandbox, options: { readonly quietly?: boolean } = {}): void {
    if (this.#dead.has(stored.uid)) return;
    const { id } = stored.record;
    const entry = this.#entryOf(id);
    if (entry.sandbox && compareVersions(stored.record.revision, entry.sandbox.record.revision) <= 0) return;
    entry.sandbox = stored;
    this.#changed(id, options.quietly);
  }

  dropSandbox(id: InstanceId, uid: string): void {
    this.#dead.add(uid);
    const entry = this.#entries.get(id);
    if (entry?.sandbox?.uid !== uid) return;
    delete entry.sandbox;
    this.#changed(id);
  }

  putPod(pod: StoredPod): void {
    if (pod.ownerUid === undefined || this.#dead.has(pod.uid)) return;
    if (pod.isForced) {
      this.dropPod(pod);
      return;
    }
    const entry = this.#entryOf(pod.id);
    if (entry.pod && compareVersions(pod.revision, entry.pod.revision) <= 0) return;
    this.#placeOnNode(pod.id, entry.pod?.nodeName, pod.nodeName);
    entry.pod = pod;
    if (pod.vitals.kind === 'available') entry.startedAt ??= pod.vitals.startedAt;
    this.#changed(pod.id);
  }

  /** The Pod as it was last seen. */
  dropPod(pod: StoredPod): void {
    const { id, uid, vitals: last } = pod;
    this.#dead.add(uid);
    const entry = this.#entries.get(id);
    if (!entry || (entry.pod && entry.pod.uid !== uid)) return;
    const wasOwn = isOwn(pod, entry.sandbox);
    this.#placeOnNode(id, entry.pod?.nodeName, undefined);
    delete entry.pod;
    if (wasOwn && !entry.podGone) {
      const end = endOf({ ...pod, endsBy: pod.endsBy ?? 0 });
      entry.podGone = last.kind === 'gone' ? last : pod.disruption === undefined ? DELETED_POD : { kind: 'gone', exitCode: null, reason: pod.disruption };
      if (end) entry.podEnd = end;
    }
    this.#changed(id);
  }

  /**
   * These Pods stood at the revision, and no others. A Pod that was made or read here, and ended while no watch told, is known
   * to nobody else: it would stay for ever.
   */
  async listedPods(revision: string, isListed: (pod: StoredPod) => boolean): Promise<void> {
    await this.#forEach((_, { pod }) => { if (pod && compareVersions(pod.revision, revision) <= 0 && !isListed(pod)) this.dropPod(pod); });
  }

  /** The same of records. */
  async listedSandboxes(revision: string, isListed: (stored: StoredSandbox) => boolean): Promise<void> {
    await this.#forEach((id, { sandbox }) => {
      if (sandbox && compareVersions(sandbox.record.revision, revision) <= 0 && !isListed(sandbox)) this.dropSandbox(id, sandbox.uid);
    });
  }

  /** An uncached look found no Pod, or another's. */
  foundNoPod(id: InstanceId): void {
    const entry = this.#entries.get(id);
    if (!entry || ownPodOf(entry)) return;
    entry.podGone ??= { kind: 'gone', exitCode: null, reason: 'its Pod is gone' };
    this.#changed(id);
  }

  /** What the node is like has changed. */
  nodeChanged(nodeName: string): void {
    for (const id of this.#byNode.get(nodeName) ?? []) this.#changed(id);
  }

  /** Those that are there now, a slice of the event loop at a time. */
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
    if (!entry) this.#entries.set(id, entry = {});
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

  #changed(id: InstanceId, quietly = false): void {
    const entry = this.#entries.get(id);
    if (!entry || (!this.#reporting && !isWhole(entry))) return;
    const fact = this.#factOf(id, entry);
    const { record, vitals } = fact;
    const before = entry.shown;
    const reason = 'reason' in vitals ? vitals.reason : undefined;
    if (before?.revision === record?.revision && before?.state === record?.state && before?.kind === vitals.kind && before.reason === reason) return;
    entry.shown = { revision: record?.revision, state: record?.state, kind: vitals.kind, reason };
    if (!entry.sandbox && !entry.pod) this.#entries.delete(id);
    if (!quietly && (before || record)) this.#deps.report(fact);
    if (this.#reporting && record?.claim && !entry.podGone && !ownPodOf(entry)) this.#deps.missesPod(id);
  }

  #factOf(id: InstanceId, entry: Entry): InstanceFact {
    const pod = ownPodOf(entry);
    return { id, record: recordOf(entry.sandbox, pod ? endOf(pod) : entry.podEnd), vitals: pod ? this.#vitalsOf(pod, entry.startedAt) : entry.podGone ?? (entry.sandbox ? NO_POD : NEITHER) };
  }

  #vitalsOf({ vitals, endsBy, disruption, nodeName }: StoredPod, startedAt: number | undefined): Vitals {
    if (vitals.kind === 'gone') return endsBy !== undefined && disruption === undefined ? { ...vitals, removed: true } : vitals;
    const trouble = endsBy !== undefined ? disruption ?? 'its Pod is being deleted' : nodeName === undefined ? undefined : this.#deps.nodeTrouble(nodeName);
    if (startedAt === undefined) return vitals.kind === 'available' || trouble === undefined ? vitals : { kind: 'starting', reason: trouble };
    if (trouble !== undefined) return { kind: 'unavailable', startedAt, reason: trouble };
    return vitals.kind === 'starting' ? { ...vitals, kind: 'unavailable', startedAt, reason: vitals.reason ?? 'not ready' } : vitals;
  }
}

/** Record and own Pod are both known: what is still to be listed can't belie it. */
const isWhole = (entry: Entry): boolean => entry.sandbox !== undefined && ownPodOf(entry) !== undefined;

const DELETED_POD = { kind: 'gone', exitCode: null, reason: 'its Pod was deleted', removed: true } as const;

const NO_POD: Vitals = { kind: 'starting', reason: 'its Pod is not there yet' };

const NEITHER: Vitals = { kind: 'gone', exitCode: null, reason: 'neither its record nor its Pod is there' };

const isOwn = (pod: StoredPod, sandbox: StoredSandbox | undefined): boolean =>
  !sandbox || (pod.ownerUid === sandbox.uid && (sandbox.podUid === undefined || sandbox.podUid === pod.uid));

const ownPodOf = ({ pod, sandbox }: Entry): StoredPod | undefined => (pod && isOwn(pod, sandbox) ? pod : undefined);

/**
 * Claimed, and ended or told to end: its own end stands first, then what that of its Pod says. Unclaimed, and deleted but for
 * somebody's finalizer: dead, never free.
 */
export const recordOf = (sandbox: StoredSandbox | undefined, podEnd: End | undefined): InstanceRecord | undefined => {
  if (!sandbox) return undefined;
  const { record, terminating } = sandbox;
  if (!record.claim) return terminating ? undefined : record;
  const end = record.end ?? podEnd ?? (terminating ? DELETED : undefined);
  return end ? { ...record, state: 'ending', end } : record;
};

const DELETED: End = { reason: 'deleted', exitCode: null };

/** Undefined where it is not told to end, and of a main process that ended by itself. */
export const endOf = ({ vitals, endsBy, disruption }: StoredPod): End | undefined => {
  const exitCode = vitals.kind === 'gone' ? vitals.exitCode : null;
  if (disruption !== undefined && (endsBy !== undefined || vitals.kind === 'gone')) return { reason: 'killed', exitCode };
  return endsBy !== undefined && vitals.kind !== 'gone' ? DELETED : undefined;
};
