import type { LogEventCode } from '../../contracts/log-events.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import { Deferred } from '../../lib/deferred.ts';
import type { WatchEvent } from './api-calls.ts';
import type { Mirror } from '../../model/mirror/mirror.ts';
import type { Version } from '../../model/mirror/mirror-terms.ts';
import { ApiUnreachable, notFound } from './api-errors.ts';
import { identityOf, resourceVersionOf, versionOf } from './api-objects.ts';
import { Slices } from '../../lib/slices.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';
import { Waiters } from './reflector-waiters.ts';
import { CatchUp } from './catch-up.ts';
import { MirrorTrust, type Doubt, type ListDue } from './mirror-trust.ts';
import { pagesOf } from './pages-of.ts';
import { checked, isOlder } from './versions-now.ts';
import {
  type ReflectorDeps,
  type ReflectorCounters,
  type ReflectorTimings,
  TIMINGS,
  PAGE_SIZE,
  MOST_COMPARED,
  SLICE_MS,
  SHORT_WATCH_SECONDS,
  ENDS_AT_ONCE_MS,
  EARLY_MS,
  CALM_MS,
} from './reflector-terms.ts';

/**
 * Follows one kind of objects: lists it in pages, then watches. Resumes an interrupted watch from
 * the last revision, or lists again if the API server has forgotten it, or its store went back to
 * an older copy. Holds the event loop no longer than a slice and the parsing of one page.
 */
export class Reflector<T> {
  readonly counters: ReflectorCounters = {
    lists: 0,
    relists: 0,
    restarts: 0,
    events: 0,
    mishaps: 0,
  };
  readonly #deps: ReflectorDeps<T>;
  readonly #timings: ReflectorTimings;
  readonly #random: () => number;
  readonly #mirror: Mirror<T>;
  readonly #stopped = new AbortController();
  readonly #waiters: Waiters;
  readonly #catchUp: CatchUp<T>;
  readonly #firstPass = new Deferred<void>();
  readonly #trust: MirrorTrust;
  #watch: { readonly controller: AbortController; readonly short: boolean } | undefined;
  #work: Promise<void> | undefined;

  constructor(deps: ReflectorDeps<T>) {
    this.#deps = deps;
    this.#timings = { ...TIMINGS, ...deps.tuning?.timings };
    this.#random = deps.tuning?.random ?? Math.random;
    this.#mirror = deps.mirror;
    this.#trust = new MirrorTrust(this.#timings.silenceMs, deps.heard);
    // Bookmarks come shortly before a watch ends, so a short watch gets one soon.
    this.#waiters = new Waiters({
      of: deps.path,
      hurry: () => {
        if (this.#watch && !this.#watch.short) this.#watch.controller.abort();
      },
    });
    this.#catchUp = new CatchUp({
      collection: deps,
      trust: this.#trust,
      waiters: this.#waiters,
      mostCompared: this.#mostCompared,
      wentBack: (why) => {
        this.#storeWentBack(why);
      },
    });
    deps.mirror.onWentBack((why) => {
      this.#storeWentBack(why);
    });
    deps.mirror.onFailed((error, key) => {
      this.#mishap(error, key, 'object-change-not-applied');
    });
  }

  start(): void {
    this.#work ??= this.#run();
  }

  /** Reports nothing afterwards. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#firstPass.reject(new Error(`the reflector of ${this.#deps.path} was stopped`));
    this.#waiters.end(new ApiUnreachable('stopped'));
    await this.#work;
  }

  /** Resolves once a complete list is reported. Rejects if stopped before. */
  synced(): Promise<void> {
    return this.#firstPass.promise;
  }

  get stale(): string | undefined {
    return this.#trust.stale;
  }

  get refused(): boolean {
    return this.#trust.refused;
  }

  /** Empty before the first list. */
  get revision(): string {
    return this.#mirror.revision;
  }

  get size(): number {
    return this.#mirror.size;
  }

  report(): MirrorReport {
    const { path } = this.#deps;
    const silentMs = Math.round(this.#trust.silentMs);
    return {
      name: path.slice(path.lastIndexOf('/') + 1),
      objects: this.size,
      revision: this.revision,
      silentMs: silentMs === Infinity ? undefined : silentMs,
      stale: this.stale,
      ...this.counters,
    };
  }

  get(key: string): T | undefined {
    return this.#mirror.get(key);
  }

  caughtUp(deadlineMs: number): Promise<void> {
    return this.#catchUp.caughtUp(deadlineMs);
  }

  reached(revision: string, withinMs: number): Promise<boolean> {
    return this.#catchUp.reached(revision, withinMs);
  }

  /** Uncached. Rejects with the API server's error, except for a missing object. */
  async look(key: string, path: string): Promise<void> {
    const found = this.#mirror.read(key);
    const object = await this.#deps.api.get(path).catch(notFound);
    found(object === undefined ? undefined : versionOf(object, this.#deps.trim));
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stopped.signal.aborted;) {
      const began = performance.now();
      try {
        while (this.#trust.listDue && !this.#stopped.signal.aborted)
          await this.#list(this.#trust.listDue);
        if (this.#trust.doubt) await this.#verify(this.#trust.doubt);
        const end = this.#trust.listDue ? 'cut' : await this.#follow();
        // A watch that the API server keeps ending at once counts as a failure.
        failures =
          end === 'ended' && performance.now() - began < ENDS_AT_ONCE_MS ? failures + 1 : 0;
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
    this.#deps.failed?.(error);
    this.#trust.failed(error);
    log.warn(
      { path, error, revision: this.revision, relist: this.#trust.listDue !== undefined },
      'reflector-restarts',
    );
  }

  async #pause(failures: number): Promise<void> {
    const { firstPauseMs, longestPauseMs } = this.#timings;
    const most = Math.min(firstPauseMs * 2 ** Math.min(failures - 1, 16), longestPauseMs);
    await delay(most * (0.5 + this.#random() / 2), undefined, {
      signal: this.#stopped.signal,
    }).catch(() => undefined);
  }

  async #list(due: ListDue): Promise<void> {
    const { api, path, labelSelector, tuning } = this.#deps;
    const { pageSize = PAGE_SIZE } = tuning ?? {};
    this.counters.lists += 1;
    if (this.counters.lists > 1) this.counters.relists += 1;
    const slices = new Slices(SLICE_MS);
    const list = this.#mirror.list(due);
    const query = { limit: pageSize, labelSelector };
    const terms = { deadlineMs: this.#timings.pageDeadlineMs, signal: this.#stopped.signal };
    const pages = pagesOf(api, path, { query, ...terms });
    for await (const { items, next, resourceVersion } of pages) {
      await slices.next();
      for (const object of items) {
        if (this.#stopped.signal.aborted) return;
        const version = this.#read(object);
        if (version) list.put(version);
        else list.keep(identityOf(object));
        if (slices.usedUp) await slices.next();
      }
      if (next !== undefined) continue;
      for (const _ of list.complete(resourceVersion)) if (slices.usedUp) await slices.next();
      return this.#complete(due, resourceVersion);
    }
  }

  #complete(due: ListDue, revision: string): void {
    this.#trust.listed(due);
    this.#advance(revision);
    this.#firstPass.resolve();
  }

  /** Undefined for an unreadable object, which changes nothing. */
  #read(object: unknown): Version<T> | undefined {
    try {
      return versionOf(object, this.#deps.trim);
    } catch (error) {
      if (error instanceof ApiUnreachable) throw error;
      this.#mishap(error, identityOf(object).key, 'object-not-read');
      return undefined;
    }
  }

  #mishap(error: unknown, key: string, event: LogEventCode): void {
    this.counters.mishaps += 1;
    this.#deps.log.error({ path: this.#deps.path, key, error }, event);
  }

  /** `cut`: we ended the watch. */
  async #follow(): Promise<'ended' | 'cut'> {
    const { watches, path, labelSelector } = this.#deps;
    const { watchSeconds, silenceMs } = this.#timings;
    const short = this.#waiters.areHurried;
    const controller = new AbortController();
    const abort = (): void => {
      controller.abort();
    };
    this.#stopped.signal.addEventListener('abort', abort, { once: true });
    if (this.#stopped.signal.aborted) abort();
    this.#watch = { controller, short };
    const timeoutSeconds = short
      ? Math.min(SHORT_WATCH_SECONDS, watchSeconds)
      : Math.ceil(watchSeconds * (1 - this.#random() / 5));
    try {
      const slices = new Slices(SLICE_MS);
      const began = performance.now();
      let isSilent = true;
      const query = { resourceVersion: this.revision, timeoutSeconds, silenceMs, labelSelector };
      for await (const event of watches.watch(path, query, controller.signal)) {
        if (controller.signal.aborted) return 'cut';
        this.#take(event);
        isSilent = false;
        if (slices.usedUp) await slices.next();
      }
      if (controller.signal.aborted) return 'cut';
      const isEarly = performance.now() - began < timeoutSeconds * 1_000 - EARLY_MS;
      this.#trust.watched(isEarly ? 'cut' : isSilent ? 'silent' : undefined);
      return 'ended';
    } finally {
      this.#watch = undefined;
      this.#stopped.signal.removeEventListener('abort', abort);
    }
  }

  /** Compares after a watch without events, or a cut one: it may have followed another store. */
  async #verify(doubt: Doubt): Promise<void> {
    const { mirror } = this.#deps;
    const by = doubt === 'silent' && this.size <= this.#mostCompared ? 'objects' : 'revision';
    const checking = checked(mirror, this.#deps, by);
    const found = await unlessAborted(this.#stopped.signal, checking);
    if (this.#trust.listDue) return;
    if (found.wentBack !== undefined) this.#storeWentBack(found.wentBack);
    else this.#trust.compared(found.differs === true);
  }

  get #mostCompared(): number {
    return this.#deps.tuning?.mostCompared ?? MOST_COMPARED;
  }

  #take({ type, object }: WatchEvent): void {
    const [before, revision] = [this.revision, resourceVersionOf(object)];
    if (isOlder(revision, before)) {
      this.#storeWentBack(`it went back from revision ${before} to ${revision}`);
      throw new ApiUnreachable(`the API server went back from revision ${before} to ${revision}`);
    }
    if (type !== 'BOOKMARK') {
      this.counters.events += 1;
      const version = this.#read(object);
      if (type === 'DELETED')
        this.#mirror.toldGone(version ?? versionOf<T>(object, () => undefined));
      else if (version) this.#mirror.told(version);
    }
    this.#trust.heard();
    this.#advance(revision);
  }

  /** The API server's revisions are not comparable with the mirror's any more. */
  #storeWentBack(why: string): void {
    if (!this.#trust.wentBack(why)) return;
    this.#mirror.distrust();
    this.#deps.log.error({ path: this.#deps.path, why }, 'api-server-store-went-back');
    this.#watch?.controller.abort();
  }

  #advance(revision: string): void {
    this.#mirror.advance(revision);
    this.#waiters.look();
  }
}
