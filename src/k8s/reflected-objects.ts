import type { Log } from '../contracts/log.ts';
import { identityOf } from './api-objects.ts';

/** `put`: the object is there, as trimmed. `gone`: it is not there any more; the record as it was last known. */
export interface ReflectedChange<T> {
  readonly type: 'put' | 'gone';
  /** `namespace/name`, or the name of what has no namespace. */
  readonly key: string;
  readonly record: T;
}

export interface ReflectedObjectsDeps<T> {
  /** Of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  /** What is kept of an object; undefined: nothing, as if it were not there. What it throws counts as no change. */
  readonly trim: (object: unknown) => T | undefined;
  /** Called for each change in order, synchronously. What it throws is logged. */
  readonly report: (change: ReflectedChange<T>) => void;
  readonly log: Log;
}

interface Entry<T> {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly record: T;
}

const MISHAP = Symbol('mishap');

/** The trimmed objects of one collection, each change of which is reported. `counters.mishaps` counts what went wrong with one of them. */
export class ReflectedObjects<T> {
  readonly #deps: ReflectedObjectsDeps<T>;
  readonly #counters: { mishaps: number };
  readonly #entries = new Map<string, Entry<T>>();

  constructor(deps: ReflectedObjectsDeps<T>, counters: { mishaps: number }) {
    this.#deps = deps;
    this.#counters = counters;
  }

  get size(): number { return this.#entries.size; }

  keys(): Iterable<string> { return this.#entries.keys(); }

  get(key: string): T | undefined { return this.#entries.get(key)?.record; }

  versionOf(key: string): string | undefined { return this.#entries.get(key)?.resourceVersion; }

  /** Answers the object's key. */
  put(object: unknown): string {
    const { key, uid, resourceVersion } = identityOf(object);
    const known = this.#entries.get(key);
    if (known?.resourceVersion === resourceVersion) return key;
    if (known && known.uid !== uid) this.drop(key); // made again under its name
    const record = this.#trimmed(object, key);
    if (record === MISHAP) return key;
    if (record === undefined) {
      this.drop(key);
      return key;
    }
    this.#entries.set(key, { uid, resourceVersion, record });
    this.#report({ type: 'put', key, record });
    return key;
  }

  /** `object`: its last state, where that is known. */
  drop(key: string, object?: unknown): void {
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
    this.#counters.mishaps += 1;
    this.#deps.log.error({ path: this.#deps.path, key, error }, what);
  }
}
