import type { Activity, Expiry } from '../contracts/coordination.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { unavailable } from '../model/refusals.ts';
import type { End } from '../model/sandbox.ts';
import { ACTIVITY_BUCKETS, type Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { BEGIN_MARKS, ENDED, EXPIRE, MARK_ENDED, TOUCH } from './scripts/activity.ts';

export const ACTIVITY_SCRIPTS = [TOUCH, BEGIN_MARKS, EXPIRE, MARK_ENDED, ENDED] as const;

/** One mark of an id in so many ms. */
const COALESCED_MS = 5_000;
const WRITE_MS = 1_000;
const ENDED_MS = 60_000;
const MOST_TOUCHED = 100_000;
/** Ids in one script. */
const MOST_AT_ONCE = 500;

interface Touched {
  /** By the monotonic clock. */
  at: number;
  /** When a mark of it was last written; undefined: never. */
  writtenAt: number | undefined;
}

/** Marks of activity and of ends in Redis. `start()` begins to write what was touched, `stop()` writes the last of it. */
export class RedisActivity implements Activity {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  /** Those that were touched lately. */
  readonly #touched = new Map<InstanceId, Touched>();
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor({ link, keys }: { readonly link: RedisLink; readonly keys: Keys }) {
    this.#link = link;
    this.#keys = keys;
  }

  /** What ended before this is not known to be marked. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => { this.#write(); }, WRITE_MS).unref();
    await Promise.allSettled(Array.from({ length: ACTIVITY_BUCKETS }, (_, bucket) => this.#link.run(BEGIN_MARKS, [this.#keys.activityBucket(bucket)], [])));
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    for (const touched of this.#touched.values()) if (isUnwritten(touched)) touched.writtenAt = undefined;
    this.#write();
    await this.#writing;
  }

  touch(id: InstanceId): void {
    const at = performance.now();
    const touched = this.#touched.get(id);
    if (touched) touched.at = at;
    else if (this.#touched.size < MOST_TOUCHED) {
      this.#touched.set(id, { at, writtenAt: undefined });
      this.#soon ??= setImmediate(() => { this.#write(); });
    }
  }

  async expire(id: InstanceId, { idleTimeoutMs, claimedAt }: { readonly idleTimeoutMs: number; readonly claimedAt: number }): Promise<Expiry> {
    const touched = this.#touched.get(id);
    const age = touched && isUnwritten(touched) ? Math.floor(performance.now() - touched.at) : '';
    const [answer, activeAt] = await this.#link.run(EXPIRE, [this.#keys.activity(id)], [id, idleTimeoutMs, claimedAt, age]);
    return answer === 'expired' ? { expired: true } : { expired: false, activeAt: Number(activeAt) };
  }

  async markEnded(id: InstanceId, end: End): Promise<void> {
    this.#touched.delete(id);
    await this.#link.run(MARK_ENDED, [this.#keys.activity(id), this.#keys.ended(id)], [id, JSON.stringify(end), ENDED_MS]);
  }

  async ended(id: InstanceId): Promise<End | undefined> {
    const [answer, end] = await this.#link.run(ENDED, [this.#keys.activity(id), this.#keys.ended(id)], [ENDED_MS]);
    if (answer === 'unknown') throw unavailable('ends of the last minute are not known');
    return answer === 'ended' ? JSON.parse(String(end)) as End : undefined;
  }

  #write(): void {
    clearImmediate(this.#soon);
    this.#soon = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
  }

  /** Never rejects: what could not be written is written in a second. */
  async #writeAll(): Promise<void> {
    const now = performance.now();
    const byKey = new Map<string, InstanceId[]>();
    for (const [id, touched] of this.#touched) {
      if (touched.writtenAt !== undefined && now - touched.writtenAt < COALESCED_MS) continue;
      if (!isUnwritten(touched)) {
        this.#touched.delete(id);
        continue;
      }
      const key = this.#keys.activity(id);
      const ids = byKey.get(key);
      if (ids) ids.push(id);
      else byKey.set(key, [id]);
    }
    await Promise.allSettled([...byKey].map(([key, ids]) => this.#mark(key, ids)));
  }

  async #mark(key: string, ids: readonly InstanceId[]): Promise<void> {
    for (let from = 0; from < ids.length; from += MOST_AT_ONCE) {
      const writtenAt = performance.now();
      const due = ids.slice(from, from + MOST_AT_ONCE).flatMap((id) => {
        const touched = this.#touched.get(id);
        return touched ? [{ id, touched }] : [];
      });
      await this.#link.run(TOUCH, [key], due.flatMap(({ id, touched }) => [id, Math.max(0, Math.floor(writtenAt - touched.at))]));
      for (const { touched } of due) touched.writtenAt = writtenAt;
    }
  }
}

const isUnwritten = ({ at, writtenAt }: Touched): boolean => writtenAt === undefined || at > writtenAt;
