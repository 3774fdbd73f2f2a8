import { resourceVersionOf } from './api-objects.ts';
import { PATIENCE_MS, type ReflectorDeps } from './reflector-terms.ts';
import type { MirrorTrust } from './mirror-trust.ts';
import type { Waiters } from './reflector-waiters.ts';
import { isOlder, isShown, versionsNow } from './versions-now.ts';

export interface CatchUpDeps<T> {
  readonly collection: ReflectorDeps<T>;
  readonly trust: MirrorTrust;
  readonly waiters: Waiters;
  readonly mostCompared: number;
  readonly wentBack: (why: string) => void;
}

export class CatchUp<T> {
  readonly #deps: CatchUpDeps<T>;

  constructor(deps: CatchUpDeps<T>) {
    this.#deps = deps;
  }

  /**
   * A small collection is compared with a list of metadata (some 50 ms). A large, quiet one needs a
   * bookmark, which takes about two seconds. Rejects with ApiUnreachable after `deadlineMs`.
   */
  async caughtUp(deadlineMs: number): Promise<void> {
    const until = performance.now() + deadlineMs;
    const { api, path, mirror } = this.#deps.collection;
    const before = mirror.revision;
    if (mirror.size > this.#deps.mostCompared) {
      const revision = resourceVersionOf(await api.list(path, { limit: 1 }, { deadlineMs }));
      if (isOlder(revision, before))
        this.#deps.wentBack(`it went back from revision ${before} to ${revision}`);
      await this.#deps.waiters.until(() => this.#hasReached(revision), {
        what: `revision ${revision}`,
        deadlineMs: until - performance.now(),
        patienceMs: 0,
      });
      return;
    }
    const now = await versionsNow(api, this.#deps.collection, deadlineMs);
    const { revision } = now;
    if (isOlder(revision, before))
      this.#deps.wentBack(`it went back from revision ${before} to ${revision}`);
    const missing = new Set([...now.versions.keys(), ...mirror.keys()]);
    const hasShown = (): boolean => {
      if (this.#deps.trust.listDue?.afresh) return false;
      for (const key of missing) if (isShown(mirror, now, key)) missing.delete(key);
      return missing.size === 0 || this.#hasReached(revision);
    };
    await this.#deps.waiters.until(hasShown, {
      what: `revision ${revision}`,
      deadlineMs: until - performance.now(),
      patienceMs: PATIENCE_MS,
    });
  }

  /** Does not make the API server hurry. */
  async reached(revision: string, withinMs: number): Promise<boolean> {
    return await this.#deps.waiters
      .until(() => this.#hasReached(revision), {
        what: `revision ${revision}`,
        deadlineMs: withinMs,
      })
      .then(
        () => true,
        () => false,
      );
  }

  #hasReached(revision: string): boolean {
    const { mirror } = this.#deps.collection;
    const isListed = mirror.revision !== '' && !this.#deps.trust.listDue;
    return isListed && !isOlder(mirror.revision, revision);
  }
}
