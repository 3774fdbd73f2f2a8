import type { Log } from '../contracts/log.ts';
import type { ApiClient } from './api-client.ts';
import { isRefused } from './api-errors.ts';
import { objectPath, overwritten, READY, readyOf, type Condition, type Fault, type Reading, type Resource, type ResourceObject, type Written } from './resource.ts';

export interface SettlerDeps<T> {
  readonly api: ApiClient;
  readonly resource: Resource<T>;
  readonly log: Log;
  readonly now: () => number;
}

const FIRST_DELAY_MS = 250;
const AGAIN_MS = 30_000;

/**
 * Fills in what is missing of objects made or edited by hand, and writes on those that can't be used why not. Every replica
 * does so, each after a short random while; all writes are conditional, so that the first one stands. What fails is tried
 * again after half a minute.
 */
export class Settler<T> {
  readonly #deps: SettlerDeps<T>;
  /** What there is to do, by the object's key; at most one piece of work for each object. */
  readonly #waiting = new Map<string, { readonly reading: Reading<T>; readonly timer: NodeJS.Timeout }>();
  #stopped = false;

  constructor(deps: SettlerDeps<T>) { this.#deps = deps; }

  /** An object as it was last seen; undefined: gone. */
  consider(key: string, reading: Reading<T> | undefined): void {
    clearTimeout(this.#waiting.get(key)?.timer);
    this.#waiting.delete(key);
    if (reading && !isDone(reading)) this.#arm(key, reading, Math.random() * FIRST_DELAY_MS);
  }

  /** Now, what else would wait for its next attempt. */
  lookAgain(): void {
    for (const [key, { reading, timer }] of this.#waiting) {
      clearTimeout(timer);
      this.#arm(key, reading, Math.random() * FIRST_DELAY_MS);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }

  #arm(key: string, reading: Reading<T>, delayMs: number): void {
    if (this.#stopped) return;
    const timer = setTimeout(() => {
      this.#arm(key, reading, AGAIN_MS);
      this.#attempt(reading).catch((error: unknown) => {
        if (isRefused(error, 409) || isRefused(error, 404)) return; // somebody was first, or it is gone: the watch tells
        this.#deps.log.warn({ kind: this.#deps.resource.kind, key, error }, 'an object made by hand can not be settled yet');
      });
    }, delayMs).unref();
    this.#waiting.set(key, { reading, timer });
  }

  async #attempt(reading: Reading<T>): Promise<void> {
    if (reading.kind === 'wrong') await this.#tell(reading.object, reading.fault);
    if (reading.kind === 'record' && reading.mended) await this.#tell(reading.mended, undefined);
    if (reading.kind !== 'unsettled') return;
    const { object } = reading;
    const settled = this.#deps.resource.settle?.(object);
    if (!settled) return;
    if (isFault(settled)) {
      await this.#tell(object, settled);
      return;
    }
    const known = readyOf(object);
    const stored = await this.#deps.api.replace(this.#pathOf(object), overwritten(object, settled)) as ResourceObject;
    if (known?.status === 'False') await this.#tell(stored, undefined);
  }

  /** By the condition `Ready`; undefined: all is well. */
  async #tell(object: ResourceObject, fault: Fault | undefined): Promise<void> {
    const { api, log, resource } = this.#deps;
    const known = readyOf(object);
    const [status, reason, message] = fault ? ['False', fault.reason, fault.message] as const : ['True', 'Usable', ''] as const;
    if (known?.status === status && known.reason === reason && known.message === message) return;
    const { name, namespace, generation, resourceVersion } = object.metadata;
    if (fault) log.warn({ kind: resource.kind, namespace, name, reason: fault.reason, message: fault.message }, 'an object made by hand can not be used');
    const condition: Omit<Condition, 'lastTransitionTime'> = { type: READY, status, reason, message, ...(generation === undefined ? {} : { observedGeneration: generation }) };
    const others = object.status?.conditions?.filter(({ type }) => type !== READY) ?? [];
    const lastTransitionTime = known?.status === status ? known.lastTransitionTime : new Date(this.#deps.now()).toISOString();
    await api.patch(`${this.#pathOf(object)}/status`, 'application/merge-patch+json',
      { metadata: { resourceVersion }, status: { conditions: [...others, { ...condition, lastTransitionTime }] } });
  }

  #pathOf({ metadata }: ResourceObject): string { return objectPath(this.#deps.resource.plural, metadata); }
}

const isFault = (settled: Written | Fault): settled is Fault => 'reason' in settled;

const isDone = (reading: Reading<unknown>): boolean => reading.kind === 'too-new' || (reading.kind === 'record' && !reading.mended);
