import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../contracts/log.ts';
import type { ApiClient, WatchEvent } from './api-client.ts';
import { ApiRefused, ApiUnreachable } from './api-errors.ts';
import { identityOf, listPageOf, resourceVersionOf } from './api-objects.ts';
import { compareVersions } from './resource-version.ts';
import { Slices } from './slices.ts';

/** `put`: the object is there, as trimmed. `gone`: it is not there any more; the record as it was last known. */
export interface ReflectedChange<T> {
  readonly type: 'put' | 'gone';
  /** `namespace/name`, or the name of what has no namespace. */
  readonly key: string;
  readonly record: T;
}

export interface ReflectorDeps<T> {
  /** For lists. */
  readonly api: ApiClient;
  /** For the watch, on a connection of its own. */
  readonly watches: ApiClient;
  /** Of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  readonly labelSelector?: string;
  /** What is kept of an object; undefined: nothing, as if it were not there. What it throws counts as no change. */
  readonly trim: (object: unknown) => T | undefined;
  /** Called for each change in order, synchronously. What it throws is logged. */
  readonly report: (change: ReflectedChange<T>) => void;
  readonly log: Log;
  /** Objects a page. */
  readonly pageSize?: number;
  readonly timings?: Partial<ReflectorTimings>;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

export interface ReflectorTimings {
  /** A watch ends by itself after this, less up to a fifth. */
  readonly watchSeconds: number;
  /** Without a word from the API server after which the mirror is stale and the link dead. */
  readonly silenceMs: number;
  readonly pageDeadlineMs: number;
  /** Before the first restart, at most; doubled by each further failure up to the most. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

export interface ReflectorCounters {
  lists: number;
  /** Lists after the first. */
  relists: number;
  /** Watches that ended otherwise than by their time. */
  restarts: number;
  events: number;
  /** Objects that could not be trimmed, changes whose report threw. */
  mishaps: number;
}

/**
 * Follows one kind of the API server's objects for ever: lists it in pages, watches from the list's revision, resumes from
 * the last revision seen after whatever cut the watch short, and lists anew where the API server has forgotten that
 * revision. Keeps the trimmed records alone, and reports each change once and in order; after a new list also what has
 * disappeared. Never holds the event loop longer than a slice and the parsing of a page.
 */
export class Reflector<T> {
  readonly counters: ReflectorCounters = { lists: 0, relists: 0, restarts: 0, events: 0, mishaps: 0 };
  readonly #deps: ReflectorDeps<T>;
  readonly #timings: ReflectorTimings;
  readonly #random: () => number;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #stopped = new AbortController();
  readonly #waiters = new Set<Waiter>();
  readonly #firstPass: Promise<void>;
  #endFirstPass: (failure?: Error) => void = () => undefined;
  #revision = '';
  /** Nothing may be resumed from the revision: it was never reached, or is forgotten. */
  #listDue = true;
  #heardAt = Number.NEGATIVE_INFINITY;
  #watch: { readonly controller: AbortController; readonly short: boolean } | undefined;
  #work: Promise<void> | undefined;
  #problem = 'not listed yet';

  constructor(deps: ReflectorDeps<T>) {
    this.#deps = deps;
    this.#timings = { ...TIMINGS, ...deps.timings };
    this.#random = deps.random ?? Math.random;
    this.#firstPass = new Promise((resolve, reject) => {
      this.#endFirstPass = (failure) => { if (failure) reject(failure); else resolve(); };
    });
    this.#firstPass.catch(() => undefined); // whoever waits for it hears of it
  }

  start(): void {
    this.#work ??= this.#run();
  }

  /** Ends the watch; nothing is reported afterwards. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#endFirstPass(new Error(`the reflector of ${this.#deps.path} was stopped`));
    for (const waiter of this.#waiters) waiter.end(new ApiUnreachable('stopped'));
    await this.#work;
  }

  /** Resolves once all that stood at one moment was reported. Rejects when it is stopped before. */
  synced(): Promise<void> { return this.#firstPass; }

  /** Why the mirror can't be relied on: it never was complete, or the API server has been silent; undefined where it can. */
  get stale(): string | undefined {
    const silentMs = performance.now() - this.#heardAt;
    return silentMs > this.#timings.silenceMs ? this.#problem : undefined;
  }

  /** All changes up to it were reported; empty before the first list. */
  get revision(): string { return this.#revision; }

  get size(): number { return this.#entries.size; }

  get(key: string): T | undefined { return this.#entries.get(key)?.record; }

  /** The revision of the whole store at this moment, asked uncached. Whoever waits for it has seen all that was written before. */
  async consistentRevision(deadlineMs: number): Promise<string> {
    return resourceVersionOf(await this.#deps.api.list(this.#deps.path, { limit: 1 }, { deadlineMs }));
  }

  /**
   * Resolves once all changes up to the revision were reported. Milliseconds after a write of this kind; where nothing of
   * it is written any more it takes a bookmark, which the API server is made to send in about two seconds. Rejects with
   * ApiUnreachable after `deadlineMs`.
   */
  reached(revision: string, deadlineMs: number): Promise<void> {
    if (this.#hasReached(revision)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const end = (failure?: Error): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        if (failure) reject(failure);
        else resolve();
      };
      const waiter: Waiter = { revision, end };
      const timer = setTimeout(() => { end(new ApiUnreachable(`${this.#deps.path}: revision ${revision} not reached within ${deadlineMs} ms`)); }, deadlineMs);
      this.#waiters.add(waiter);
      // The API server sends bookmarks shortly before a watch ends: one that ends soon tells soon.
      if (this.#watch && !this.#watch.short) this.#watch.controller.abort();
    });
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stopped.signal.aborted;) {
      const began = performance.now();
      try {
        if (this.#listDue) await this.#list();
        const end = await this.#follow();
        // One that the API server ends at once, again and again, is no better than one that fails.
        failures = end === 'ended' && performance.now() - began < ENDS_AT_ONCE_MS ? failures + 1 : 0;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        failures = performance.now() - began > CALM_MS ? 1 : failures + 1;
        this.#failed(error);
      }
      if (failures > 0) await this.#pause(failures);
    }
  }

  #failed(error: unknown): void {
    const { path, log } = this.#deps;
    this.counters.restarts += 1;
    if (error instanceof ApiRefused && error.status === FORGOTTEN) this.#listDue = true;
    this.#problem = error instanceof Error ? error.message : String(error);
    log.warn({ path, error, revision: this.#revision, relist: this.#listDue }, 'reflector restarts');
  }

  async #pause(failures: number): Promise<void> {
    const { firstPauseMs, longestPauseMs } = this.#timings;
    const most = Math.min(firstPauseMs * 2 ** Math.min(failures - 1, 16), longestPauseMs);
    await delay(most * (0.5 + this.#random() / 2), undefined, { signal: this.#stopped.signal }).catch(() => undefined);
  }

  /** Reports what stands, page by page, and then what has disappeared. */
  async #list(): Promise<void> {
    const { api, path, labelSelector, pageSize = PAGE_SIZE } = this.#deps;
    this.counters.lists += 1;
    if (this.#revision !== '') this.counters.relists += 1;
    const slices = new Slices(SLICE_MS);
    const missing = new Set(this.#entries.keys());
    const query = { limit: pageSize, ...(labelSelector === undefined ? {} : { labelSelector }) };
    for (let next: string | undefined, first = true; first || next !== undefined; first = false) {
      const answer = await api.list(path, { ...query, ...(next === undefined ? {} : { continue: next }) }, { deadlineMs: this.#timings.pageDeadlineMs });
      const page = listPageOf(answer);
      await slices.next();
      for (const object of page.items) {
        if (this.#stopped.signal.aborted) return;
        missing.delete(this.#put(object));
        if (slices.usedUp) await slices.next();
      }
      next = page.next;
      if (next === undefined) await this.#complete(page.resourceVersion, missing, slices);
    }
  }

  async #complete(resourceVersion: string, missing: ReadonlySet<string>, slices: Slices): Promise<void> {
    for (const key of missing) {
      this.#gone(key);
      if (slices.usedUp) await slices.next();
    }
    this.#listDue = false;
    this.#heard();
    this.#advance(resourceVersion);
    this.#problem = 'the API server is silent';
    this.#endFirstPass();
  }

  /** `cut`: by us. */
  async #follow(): Promise<'ended' | 'cut'> {
    const { watches, path, labelSelector } = this.#deps;
    const { watchSeconds, silenceMs } = this.#timings;
    const short = this.#waiters.size > 0;
    const controller = new AbortController();
    const abort = (): void => { controller.abort(); };
    this.#stopped.signal.addEventListener('abort', abort, { once: true });
    if (this.#stopped.signal.aborted) abort();
    this.#watch = { controller, short };
    const timeoutSeconds = short ? Math.min(SHORT_WATCH_SECONDS, watchSeconds) : Math.ceil(watchSeconds * (1 - this.#random() / 5));
    try {
      const slices = new Slices(SLICE_MS);
      const query = { resourceVersion: this.#revision, timeoutSeconds, silenceMs, ...(labelSelector === undefined ? {} : { labelSelector }) };
      for await (const event of watches.watch(path, query, controller.signal)) {
        if (controller.signal.aborted) return 'cut';
        this.#take(event);
        if (slices.usedUp) await slices.next();
      }
      if (controller.signal.aborted) return 'cut';
      this.#heard();
      return 'ended';
    } finally {
      this.#watch = undefined;
      this.#stopped.signal.removeEventListener('abort', abort);
    }
  }

  #take({ type, object }: WatchEvent): void {
    const revision = resourceVersionOf(object);
    if (compareVersions(revision, this.#revision) < 0) {
      this.#listDue = true; // the store was replaced by an older copy
      throw new ApiUnreachable(`the API server went back from revision ${this.#revision} to ${revision}`);
    }
    if (type !== 'BOOKMARK') {
      this.counters.events += 1;
      if (type === 'DELETED') this.#gone(identityOf(object).key, object);
      else this.#put(object);
    }
    this.#heard();
    this.#advance(revision);
  }

  /** Answers the object's key. */
  #put(object: unknown): string {
    const { key, uid, resourceVersion } = identityOf(object);
    const known = this.#entries.get(key);
    if (known?.resourceVersion === resourceVersion) return key;
    if (known && known.uid !== uid) this.#gone(key); // made again under its name
    const record = this.#trimmed(object, key);
    if (record === MISHAP) return key;
    if (record === undefined) {
      this.#gone(key);
      return key;
    }
    this.#entries.set(key, { uid, resourceVersion, record });
    this.#report({ type: 'put', key, record });
    return key;
  }

  /** `object`: its last state, where that is known. */
  #gone(key: string, object?: unknown): void {
    const known = this.#entries.get(key);
    if (!known) return;
    this.#entries.delete(key);
    const last = object === undefined ? undefined : this.#trimmed(object, key);
    this.#report({ type: 'gone', key, record: last === undefined || last === MISHAP ? known.record : last });
  }

  #trimmed(object: unknown, key: string): T | undefined | typeof MISHAP {
    try {
      return this.#deps.trim(object);
    } catch (error) {
      this.#mishap(error, key, 'an object that can not be read');
      return MISHAP;
    }
  }

  #report(change: ReflectedChange<T>): void {
    try {
      this.#deps.report(change);
    } catch (error) {
      this.#mishap(error, change.key, 'a change that was not taken in');
    }
  }

  #mishap(error: unknown, key: string, what: string): void {
    this.counters.mishaps += 1;
    this.#deps.log.error({ path: this.#deps.path, key, error }, what);
  }

  #heard(): void { this.#heardAt = performance.now(); }

  #advance(revision: string): void {
    this.#revision = revision;
    for (const waiter of this.#waiters) if (this.#hasReached(waiter.revision)) waiter.end();
  }

  #hasReached(revision: string): boolean {
    return this.#revision !== '' && !this.#listDue && compareVersions(this.#revision, revision) >= 0;
  }
}

interface Entry<T> {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly record: T;
}

interface Waiter {
  readonly revision: string;
  readonly end: (failure?: Error) => void;
}

const MISHAP = Symbol('mishap');
const TIMINGS: ReflectorTimings = { watchSeconds: 30, silenceMs: 35_000, pageDeadlineMs: 15_000, firstPauseMs: 200, longestPauseMs: 5_000 };
const PAGE_SIZE = 250;
const SLICE_MS = 8;
/** Bookmarks come two seconds before a watch's end. */
const SHORT_WATCH_SECONDS = 3;
const ENDS_AT_ONCE_MS = 500;
/** After so long a watch its end is no failure in a row. */
const CALM_MS = 10_000;
/** HTTP 410, reason `Expired`. */
const FORGOTTEN = 410;
