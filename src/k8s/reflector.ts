import { setTimeout as delay } from 'node:timers/promises';
import type { Metrics } from '../contracts/metrics.ts';
import type { MirrorReport } from '../contracts/mirror-report.ts';
import type { ApiClient, WatchEvent } from './api-client.ts';
import { ApiRefused, ApiUnreachable, notFound } from './api-errors.ts';
import { identityOf, listPageOf, resourceVersionOf, type ListPage } from './api-objects.ts';
import { ReflectedObjects, type ReflectedObjectsDeps } from './reflected-objects.ts';
import { compareVersions } from './resource-version.ts';
import { Slices } from './slices.ts';
import { versionsNow } from './versions-now.ts';

export interface ReflectorDeps<T> extends ReflectedObjectsDeps<T> {
  readonly api: Pick<ApiClient, 'list' | 'get'>;
  /** For the watch, on a connection of its own. */
  readonly watches: ApiClient;
  readonly labelSelector?: string;
  /** Objects a page. */
  readonly pageSize?: number;
  /** Objects of a collection that is compared to catch up with it. */
  readonly mostCompared?: number;
  readonly timings?: Partial<ReflectorTimings>;
  /** After a list was reported: what stood at the revision is what `get` gives now, and nothing else. Waited for. */
  readonly listed?: (revision: string) => Promise<void>;
  /** From 0 up to 1. */
  readonly random?: () => number;
  readonly metrics?: Metrics | undefined;
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
  readonly #objects: ReflectedObjects<T>;
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
    this.#objects = new ReflectedObjects(deps, this.counters);
    this.#firstPass = new Promise((resolve, reject) => {
      this.#endFirstPass = (failure) => { if (failure) reject(failure); else resolve(); };
    });
    this.#firstPass.catch(() => undefined); // whoever waits for it hears of it
    const labels = { mirror: deps.path.slice(deps.path.lastIndexOf('/') + 1) };
    deps.metrics?.read('sandpool_mirror_silence_seconds', () => (this.#revision === '' ? [] : [{ labels, value: (performance.now() - this.#heardAt) / 1_000 }]));
    deps.metrics?.read('sandpool_mirror_restarts_total', () => [{ labels, value: this.counters.restarts }]);
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

  get size(): number { return this.#objects.size; }

  /** How it stands, for whoever looks inside. */
  report(): MirrorReport {
    const { path } = this.#deps;
    const heard = this.#heardAt === Number.NEGATIVE_INFINITY ? {} : { silentMs: Math.round(performance.now() - this.#heardAt) };
    return { name: path.slice(path.lastIndexOf('/') + 1), objects: this.size, revision: this.#revision, ...heard, ...(this.stale === undefined ? {} : { stale: this.stale }), ...this.counters };
  }

  get(key: string): T | undefined { return this.#objects.get(key); }

  /**
   * Resolves once all that was written before this call was reported. A small collection is listed anew, without what its
   * objects say, and compared: some 50 ms. Of a large one that nobody writes to it takes a bookmark, which the API server is
   * made to send in about two seconds. Rejects with ApiUnreachable after `deadlineMs`.
   */
  async caughtUp(deadlineMs: number): Promise<void> {
    const until = performance.now() + deadlineMs;
    const { api, path } = this.#deps;
    if (this.size > (this.#deps.mostCompared ?? MOST_COMPARED)) {
      const revision = resourceVersionOf(await api.list(path, { limit: 1 }, { deadlineMs }));
      await this.#until(() => this.#hasReached(revision), { what: `revision ${revision}`, deadlineMs: until - performance.now(), patienceMs: 0 });
      return;
    }
    const { revision, versions } = await versionsNow(api, this.#deps, deadlineMs);
    const missing = new Set([...versions.keys(), ...this.#objects.keys()]);
    const isShown = (key: string): boolean => {
      const [known, listed] = [this.#objects.versionOf(key), versions.get(key)];
      if (listed === undefined) return known === undefined || compareVersions(known, revision) > 0;
      return known !== undefined && compareVersions(known, listed) >= 0;
    };
    const hasShown = (): boolean => {
      for (const key of missing) if (isShown(key)) missing.delete(key);
      return missing.size === 0 || this.#hasReached(revision);
    };
    await this.#until(hasShown, { what: `revision ${revision}`, deadlineMs: until - performance.now(), patienceMs: PATIENCE_MS });
  }

  /** Whether every change up to the revision is reported within so many ms; the API server is not made to hurry. */
  async reached(revision: string, withinMs: number): Promise<boolean> {
    return await this.#until(() => this.#hasReached(revision), { what: `revision ${revision}`, deadlineMs: withinMs }).then(() => true, () => false);
  }

  /** Reads one object uncached and reports what it says, if it says anything newer. Rejects as the API server does; 404 tells nothing. */
  async look(path: string): Promise<void> {
    const object = await this.#deps.api.get(path).catch(notFound);
    if (object !== undefined && this.#isNews(object)) this.#objects.put(object);
  }

  /** Looked at after each change. After `patienceMs`, if given, the API server is made to send a bookmark. */
  async #until(isSo: () => boolean, { what, deadlineMs, patienceMs }: { readonly what: string; readonly deadlineMs: number; readonly patienceMs?: number }): Promise<void> {
    if (isSo()) return;
    await new Promise<void>((resolve, reject) => {
      const end = (failure?: Error): void => {
        clearTimeout(timer);
        clearTimeout(impatience);
        this.#waiters.delete(waiter);
        if (failure) reject(failure);
        else resolve();
      };
      const waiter: Waiter = { isSo, end, isHurried: false };
      const timer = setTimeout(() => { end(new ApiUnreachable(`${this.#deps.path}: ${what} not reached within the deadline`)); }, deadlineMs);
      // The API server sends bookmarks shortly before a watch ends: one that ends soon tells soon.
      const impatience = patienceMs === undefined ? undefined : setTimeout(() => {
        waiter.isHurried = true;
        if (this.#watch && !this.#watch.short) this.#watch.controller.abort();
      }, patienceMs);
      this.#waiters.add(waiter);
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
    const missing = new Set(this.#objects.keys());
    const query = { limit: pageSize, ...(labelSelector === undefined ? {} : { labelSelector }) };
    const read = async (next?: string): Promise<ListPage> =>
      listPageOf(await api.list(path, { ...query, ...(next === undefined ? {} : { continue: next }) }, { deadlineMs: this.#timings.pageDeadlineMs }));
    for (let reading = read(); ;) {
      const { items, next, resourceVersion } = await reading;
      if (next !== undefined) {
        reading = read(next); // on its way while this one is taken in
        reading.catch(() => undefined); // heard of in its turn
      }
      await slices.next();
      for (const object of items) {
        if (this.#stopped.signal.aborted) return;
        missing.delete(this.#objects.put(object));
        if (slices.usedUp) await slices.next();
      }
      if (next === undefined) return await this.#complete(resourceVersion, missing, slices);
    }
  }

  async #complete(resourceVersion: string, missing: ReadonlySet<string>, slices: Slices): Promise<void> {
    for (const key of missing) {
      this.#objects.drop(key);
      if (slices.usedUp) await slices.next();
    }
    await this.#deps.listed?.(resourceVersion);
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
    const short = [...this.#waiters].some(({ isHurried }) => isHurried);
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
      if (type === 'DELETED') this.#objects.drop(identityOf(object).key, object);
      else if (this.#isNews(object)) this.#objects.put(object);
    }
    this.#heard();
    this.#advance(revision);
  }

  /** A watch that was cut short tells once more what a look has shown since. */
  #isNews(object: unknown): boolean {
    const { key, resourceVersion } = identityOf(object);
    const known = this.#objects.versionOf(key);
    return known === undefined || compareVersions(resourceVersion, known) > 0;
  }

  #heard(): void { this.#heardAt = performance.now(); }

  #advance(revision: string): void {
    this.#revision = revision;
    for (const waiter of this.#waiters) if (waiter.isSo()) waiter.end();
  }

  #hasReached(revision: string): boolean {
    return this.#revision !== '' && !this.#listDue && compareVersions(this.#revision, revision) >= 0;
  }
}

interface Waiter {
  readonly isSo: () => boolean;
  isHurried: boolean;
  readonly end: (failure?: Error) => void;
}

const TIMINGS: ReflectorTimings = { watchSeconds: 30, silenceMs: 35_000, pageDeadlineMs: 15_000, firstPauseMs: 200, longestPauseMs: 5_000 };
const PAGE_SIZE = 250;
const MOST_COMPARED = 2_000;
/** An event that is on its way comes sooner. */
const PATIENCE_MS = 250;
const SLICE_MS = 8;
/** Bookmarks come two seconds before a watch's end. */
const SHORT_WATCH_SECONDS = 3;
const ENDS_AT_ONCE_MS = 500;
/** After so long a watch its end is no failure in a row. */
const CALM_MS = 10_000;
/** HTTP 410, reason `Expired`. */
const FORGOTTEN = 410;
