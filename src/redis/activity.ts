import type { Activity, Expiry } from '../contracts/coordination/activity.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { unavailable } from '../model/refusals.ts';
import type { End } from '../model/sandbox.ts';
import { ACTIVITY_BUCKETS, type Keys } from './keys.ts';
import type { RedisLink, RedisPlace } from './redis-link.ts';

/** In ms; a third of the idle timeout if that is less. */
const COALESCED_MS = 5_000;
const MARKS_A_TIMEOUT = 3;
/** Ongoing work is reported every second, and expires without reports. */
const WORK_MS = 60_000;
/** After lost marks. */
const TOLD_AGAIN_MS = 5_000;
const WRITE_MS = 1_000;
const ENDED_MS = 60_000;
const MOST_TOUCHED = 100_000;
/** In one script call. */
const MOST_AT_ONCE = 500;

interface Touched {
  /** Monotonic. */
  at: number;
  writtenAt: number | undefined;
  coalescedMs: number;
}

export interface RedisActivityDeps extends RedisPlace {
  readonly replica: string;
}

/** `start()` begins to write pending marks, `stop()` writes the last ones. */
export class RedisActivity implements Activity {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  readonly #touched = new Map<InstanceId, Touched>();
  /** Also work that has ended, until that is written. */
  readonly #working = new Set<InstanceId>();
  readonly #rested = new Set<InstanceId>();
  readonly #replica: string;
  #timer: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor({ link, keys, replica }: RedisActivityDeps) {
    this.#link = link;
    this.#keys = keys;
    this.#replica = replica;
  }

  /** Work that ended before may be unmarked. */
  async start(): Promise<void> {
    this.#timer ??= setInterval(() => {
      this.#write();
    }, WRITE_MS).unref();
    await Promise.allSettled(
      Array.from({ length: ACTIVITY_BUCKETS }, (_, bucket) =>
        this.#link.run('begin_marks', [this.#keys.activityBucket(bucket)], []),
      ),
    );
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#next);
    for (const touched of this.#touched.values())
      if (isUnwritten(touched)) touched.writtenAt = undefined;
    for (const id of this.#working) this.#rested.add(id);
    this.#working.clear();
    this.#write();
    await this.#writing;
    clearTimeout(this.#next);
  }

  touch(id: InstanceId, idleTimeoutMs: number): void {
    const at = performance.now();
    const third = idleTimeoutMs > 0 ? idleTimeoutMs / MARKS_A_TIMEOUT : COALESCED_MS;
    const coalescedMs = Math.min(COALESCED_MS, third);
    const touched = this.#touched.get(id);
    if (touched) {
      touched.at = at;
      touched.coalescedMs = coalescedMs;
      this.#writeIn(coalescedMs);
    } else if (this.#touched.size < MOST_TOUCHED) {
      this.#touched.set(id, { at, writtenAt: undefined, coalescedMs });
      this.#soon ??= setImmediate(() => {
        this.#write();
      });
    }
  }

  work(id: InstanceId, goesOn: boolean): void {
    if (goesOn) {
      this.#working.add(id);
      this.#rested.delete(id);
    } else if (this.#working.delete(id)) this.#rested.add(id);
    else return;
    this.#soon ??= setImmediate(() => {
      this.#write();
    });
  }

  async expire(
    id: InstanceId,
    { idleTimeoutMs, claimedAt }: { readonly idleTimeoutMs: number; readonly claimedAt: number },
  ): Promise<Expiry> {
    if (this.#working.has(id)) await this.#tell([id], WORK_MS);
    const touched = this.#touched.get(id);
    const age = touched && isUnwritten(touched) ? Math.floor(performance.now() - touched.at) : '';
    const keys = [this.#keys.activity(id), this.#keys.working(id)];
    const args = [id, idleTimeoutMs, claimedAt, age, TOLD_AGAIN_MS];
    const [answer, activeAt] = await this.#link.run('expire', keys, args);
    return answer === 'expired'
      ? { expired: true }
      : { expired: false, activeAt: Number(activeAt) };
  }

  async markEnded(id: InstanceId, end: End): Promise<void> {
    this.#touched.delete(id);
    this.#working.delete(id);
    await this.#link.run(
      'mark_ended',
      [this.#keys.activity(id), this.#keys.ended(id), this.#keys.working(id)],
      [id, JSON.stringify(end), ENDED_MS],
    );
  }

  async ended(id: InstanceId): Promise<End | undefined> {
    const [answer, end] = await this.#link.run(
      'ended',
      [this.#keys.activity(id), this.#keys.ended(id)],
      [ENDED_MS],
    );
    if (answer === 'unknown') throw unavailable('the ends of the last minute are unknown');
    return answer === 'ended' ? (JSON.parse(String(end)) as End) : undefined;
  }

  #write(): void {
    clearImmediate(this.#soon);
    this.#soon = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
  }

  /** For ids that must be written within less than a second. */
  #writeIn(ms: number): void {
    if (ms >= WRITE_MS || this.#next) return;
    this.#next = setTimeout(() => {
      this.#write();
    }, ms).unref();
  }

  /** Never rejects: repeats a failed write after a second. */
  async #writeAll(): Promise<void> {
    clearTimeout(this.#next);
    this.#next = undefined;
    const now = performance.now();
    const due: InstanceId[] = [];
    for (const [id, touched] of this.#touched) {
      if (touched.writtenAt !== undefined && now - touched.writtenAt < touched.coalescedMs) {
        if (isUnwritten(touched)) this.#writeIn(touched.coalescedMs);
      } else if (isUnwritten(touched)) due.push(id);
      else this.#touched.delete(id);
    }
    const rested = [...this.#rested];
    await Promise.allSettled([
      ...[...this.#byKey(due)].map(([key, ids]) => this.#mark(key, ids)),
      this.#tell([...this.#working], WORK_MS),
      this.#tell(rested, 0).then(() => {
        for (const id of rested) this.#rested.delete(id);
      }),
    ]);
  }

  #byKey(ids: readonly InstanceId[]): ReadonlyMap<string, readonly InstanceId[]> {
    const byKey = new Map<string, InstanceId[]>();
    for (const id of ids) {
      const key = this.#keys.activity(id);
      const those = byKey.get(key);
      if (those) those.push(id);
      else byKey.set(key, [id]);
    }
    return byKey;
  }

  /** 0 ms ends the work. */
  async #tell(ids: readonly InstanceId[], ms: number): Promise<void> {
    await Promise.all(
      [...this.#byKey(ids)].map(async ([key, those]) => {
        for (let from = 0; from < those.length; from += MOST_AT_ONCE) {
          const part = those.slice(from, from + MOST_AT_ONCE);
          const keys = [key, ...part.map((id) => this.#keys.working(id))];
          await this.#link.run('work', keys, [this.#replica, ms, ...part]);
        }
      }),
    );
  }

  async #mark(key: string, ids: readonly InstanceId[]): Promise<void> {
    for (let from = 0; from < ids.length; from += MOST_AT_ONCE) {
      const writtenAt = performance.now();
      const due = ids.slice(from, from + MOST_AT_ONCE).flatMap((id) => {
        const touched = this.#touched.get(id);
        return touched ? [{ id, touched }] : [];
      });
      await this.#link.run(
        'touch',
        [key],
        due.flatMap(({ id, touched }) => [id, Math.max(0, Math.floor(writtenAt - touched.at))]),
      );
      for (const { touched } of due) touched.writtenAt = writtenAt;
    }
  }
}

const isUnwritten = ({ at, writtenAt }: Touched): boolean =>
  writtenAt === undefined || at > writtenAt;
