import type { Clock } from '../../contracts/clock.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { listPageOf } from '../api/api-objects.ts';
import type { InstanceMirror } from './instance-mirror.ts';
import {
  POOL_LABEL,
  sandboxesPath,
  STATE_LABEL,
  storedSandboxOf,
  type StoredSandbox,
} from './sandbox-resource.ts';

export interface IdleLookDeps {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly mirror: InstanceMirror;
  readonly podsReached: (namespace: string, revision: string, withinMs: number) => Promise<boolean>;
  readonly lookAtNode: (name: string) => Promise<void>;
  readonly read: (stored: StoredSandbox) => Promise<unknown>;
}

const PAGE = 20;
const MOST_PAGES = 10;
/** Pods that change report sooner. */
const REACHED_MS = 250;
const MOST_READ = 20;

/**
 * Lists idle records of a pool uncached: at most 10 pages of 20, while fewer instances than needed
 * are ready. If the mirror does not reach the list's revision soon, reads the 20 oldest of these
 * Pods too, and at most 20 nodes whose trouble keeps an instance. Callers with the same pool and
 * count share one read in 250 ms.
 */
export class IdleLook {
  readonly #deps: IdleLookDeps;
  readonly #reads: SharedReads<readonly InstanceFact[]>;

  constructor(deps: IdleLookDeps) {
    this.#deps = deps;
    this.#reads = new SharedReads({ clock: deps.clock, read: (key) => this.#list(key) });
  }

  async look(
    poolUid: string,
    namespace: string,
    atLeast: number,
  ): Promise<readonly InstanceFact[]> {
    return (await this.#reads.read(`${namespace}/${poolUid}/${atLeast}`)) ?? [];
  }

  async #list(key: string): Promise<readonly InstanceFact[]> {
    const [namespace = '', poolUid = '', atLeast] = key.split('/');
    const all: StoredSandbox[] = [];
    const late: StoredSandbox[] = [];
    let revision = '';
    let rest: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const { items, resourceVersion, next } = listPageOf(
        await this.#deps.api.list(sandboxesPath(namespace), {
          labelSelector: `${POOL_LABEL}=${poolUid},${STATE_LABEL}=idle`,
          limit: PAGE,
          continue: rest,
        }),
      );
      if (page === 0) revision = resourceVersion;
      const shown = items
        .flatMap((item) => storedSandboxOf(item) ?? [])
        .filter(({ terminating, record }) => !terminating && !record.claim);
      await Promise.all(shown.map((stored) => this.#read(stored)));
      late.push(...shown.filter((stored) => isLate(this.#known(stored))));
      all.push(...shown);
      const ready = this.#ready(all);
      if (ready.length >= Number(atLeast)) return ready;
      rest = next;
      if (rest === undefined) break;
    }
    if (late.length > 0) await this.#lookAgain(namespace, late, revision);
    return this.#ready(all); // leaves out instances that ended during the reads
  }

  async #lookAgain(
    namespace: string,
    late: readonly StoredSandbox[],
    revision: string,
  ): Promise<void> {
    const { mirror, podsReached, lookAtNode } = this.#deps;
    if (!(await podsReached(namespace, revision, REACHED_MS))) await this.#readOldest(late);
    if (this.#ready(late).length > 0) return;
    const nodes = new Set(
      late
        .flatMap(({ record }) => mirror.pod(record.id))
        .flatMap((pod) => (pod?.vitals.kind === 'available' ? (pod.nodeName ?? []) : [])),
    );
    await Promise.all([...nodes].slice(0, MOST_READ).map(lookAtNode));
  }

  async #readOldest(late: readonly StoredSandbox[]): Promise<void> {
    const oldest = [...late]
      .sort((a, b) => a.record.createdAt - b.record.createdAt)
      .slice(0, MOST_READ);
    await Promise.all(oldest.map((stored) => this.#deps.read(stored)));
  }

  /** Reads the Pod if the mirror lacks it. A known Pod's readiness is as fresh as the mirror. */
  async #read(stored: StoredSandbox): Promise<void> {
    const { mirror, read } = this.#deps;
    mirror.putSandbox(stored);
    if (!mirror.pod(stored.record.id)) await read(stored);
  }

  #known({ record: { id } }: StoredSandbox): InstanceFact | undefined {
    return this.#deps.mirror.fact(id);
  }

  #ready(of: readonly StoredSandbox[]): readonly InstanceFact[] {
    return of.flatMap((stored) => this.#known(stored) ?? []).filter(isReady);
  }
}

/** An instance that has ended may still have a live Pod, but no record. */
const isReady = ({ record, vitals }: InstanceFact): boolean =>
  record !== undefined && vitals.kind === 'available';
const isLate = (fact: InstanceFact | undefined): boolean =>
  fact?.vitals.kind === 'starting' || fact?.vitals.kind === 'unavailable';
