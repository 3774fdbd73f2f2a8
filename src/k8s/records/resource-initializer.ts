import { isSameData } from '../../lib/plain-data.ts';
import type { Denial, Grant } from '../../contracts/grants.ts';
import type { Log } from '../../contracts/log.ts';
import { LeaseLost } from '../../contracts/sandbox-driver.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { isRefused } from '../api/api-errors.ts';
import {
  objectPath,
  overwritten,
  READY,
  readyOf,
  verdictIn,
  type Condition,
  type Fault,
  type Reading,
  type Resource,
  type ResourceObject,
  type Initialized,
} from '../api/resource.ts';

export interface ResourceInitializerDeps<T> {
  readonly api: ApiClient;
  readonly resource: Resource<T>;
  readonly log: Log;
  readonly now: () => number;
}

const FIRST_DELAY_MS = 250;
const AGAIN_MS = 30_000;
/** Doubles after each denial up to AGAIN_MS. */
const DENIED_MS = 1_000;
const SEAL_AFTER_MS = 5_000;
/**
 * With its additions it must stay below the longest delay of a Node timer, beyond which Node fires
 * at once.
 */
const LONGEST_WAIT_MS = 2 ** 31 - 1 - AGAIN_MS;

/**
 * Completes objects that are made or edited by hand. Every replica does this after a short random
 * delay; writes are conditional, so the first wins. Retries failures after half a minute, and
 * denials sooner at first.
 */
export class ResourceInitializer<T> {
  readonly #deps: ResourceInitializerDeps<T>;
  readonly #waiting = new Map<
    string,
    { readonly reading: Reading<T>; readonly timer: NodeJS.Timeout }
  >();
  readonly #denials = new Map<string, number>();
  #stopped = false;

  constructor(deps: ResourceInitializerDeps<T>) {
    this.#deps = deps;
  }

  consider(key: string, reading: Reading<T> | undefined): void {
    const before = this.#waiting.get(key);
    clearTimeout(before?.timer);
    this.#waiting.delete(key);
    if (!asksForTheSame(before?.reading, reading)) this.#denials.delete(key);
    if (reading && !isDone(reading))
      this.#arm(key, reading, this.#untilAllowed(key) + this.#untilDue(reading));
  }

  lookAgain(namespace?: string): void {
    for (const [key, { reading, timer }] of this.#waiting) {
      if (namespace !== undefined && !key.startsWith(`${namespace}/`)) continue;
      clearTimeout(timer);
      this.#denials.delete(key);
      this.#arm(key, reading, Math.random() * FIRST_DELAY_MS + this.#untilDue(reading));
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
    this.#denials.clear();
  }

  /** Random, so that one replica comes first. */
  #untilAllowed(key: string): number {
    const denials = this.#denials.get(key) ?? 0;
    const backOff = denials === 0 ? 0 : Math.min(AGAIN_MS, DENIED_MS * 2 ** (denials - 1));
    return Math.random() * FIRST_DELAY_MS + backOff * (0.5 + Math.random() / 2);
  }

  /** The creator of the object seals it first. */
  #untilDue(reading: Reading<T>): number {
    if (reading.kind !== 'record' || !reading.unbound || reading.mended || reading.asked) return 0;
    const createdAt = Date.parse(reading.unbound.metadata.creationTimestamp);
    return Math.min(LONGEST_WAIT_MS, Math.max(0, createdAt + SEAL_AFTER_MS - this.#deps.now()));
  }

  #arm(key: string, reading: Reading<T>, delayMs: number): void {
    if (this.#stopped) return;
    const timer = setTimeout(() => {
      this.#arm(key, reading, AGAIN_MS);
      this.#attempt(key, reading).catch((error: unknown) => {
        // another replica was first, or it is gone
        if (isRefused(error, 409) || isRefused(error, 404)) return;
        this.#deps.log.warn(
          { kind: this.#deps.resource.kind, key, error },
          'object-not-initialized',
        );
      });
    }, delayMs).unref();
    this.#waiting.set(key, { reading, timer });
  }

  async #attempt(key: string, reading: Reading<T>): Promise<void> {
    if (reading.kind === 'wrong') await this.#tell(reading.object, reading.fault);
    if (reading.kind === 'record') await this.#finish(key, reading);
    if (reading.kind !== 'uninitialized') return;
    const { object } = reading;
    const settled = this.#deps.resource.initialize?.(object);
    if (!settled) return;
    if (isFault(settled)) {
      await this.#tell(object, settled);
      return;
    }
    await this.#granted({ key, reading, object, before: undefined }, settled);
  }

  async #granted(
    { key, reading, object, before }: Granting<T>,
    settled: Initialized<T>,
  ): Promise<void> {
    const { api, resource } = this.#deps;
    const grant = settled.record && (await resource.grants?.ask(settled.record, before));
    if (grant && isDenial(grant)) {
      this.#laterAgain(key, reading);
      await this.#tell(object, grant);
      return;
    }
    const stored = (await api
      .replace(this.#pathOf(object), overwritten(object, settled), {
        permitted: () => grant?.permitted() ?? true,
      })
      .catch(async (error: unknown) => {
        await grant?.failed(error);
        if (error instanceof LeaseLost) this.#laterAgain(key, reading); // too many writes at once
        throw error;
      })) as ResourceObject;
    const landed = resource.read(stored);
    if (landed.kind === 'record') await grant?.landed(landed.record);
    if (verdictIn(stored.kind, stored.status?.conditions)) await this.#tell(stored, undefined);
  }

  #laterAgain(key: string, reading: Reading<T>): void {
    this.#denials.set(key, (this.#denials.get(key) ?? 0) + 1);
    const waiting = this.#waiting.get(key);
    if (waiting?.reading !== reading) return;
    clearTimeout(waiting.timer);
    this.#arm(key, reading, this.#untilAllowed(key));
  }

  async #finish(
    key: string,
    reading: Extract<Reading<T>, { readonly kind: 'record' }>,
  ): Promise<void> {
    const { api, resource } = this.#deps;
    const { record, mended, unbound, asked } = reading;
    if (asked) {
      // also sealed
      const written = resource.write(asked.record as Omit<T, 'revision'>, asked.object);
      await this.#granted(
        { key, reading, object: asked.object, before: record },
        { ...written, record: asked.record },
      );
      return;
    }
    const stored =
      unbound &&
      ((await api.replace(
        this.#pathOf(unbound),
        overwritten(unbound, resource.write(record, unbound)),
      )) as ResourceObject);
    if (mended) await this.#tell(stored || mended, undefined);
  }

  async #tell(object: ResourceObject, fault: Fault | undefined): Promise<void> {
    const { api, log, resource } = this.#deps;
    const known = readyOf(object);
    const [status, reason, message] = fault
      ? (['False', fault.reason, fault.message] as const)
      : (['True', 'Usable', ''] as const);
    if (known?.status === status && known.reason === reason && known.message === message) return;
    const { name, namespace, generation, resourceVersion } = object.metadata;
    if (fault)
      log.warn(
        { kind: resource.kind, namespace, name, reason: fault.reason, message: fault.message },
        'object-not-usable',
      );
    const condition: Omit<Condition, 'lastTransitionTime'> = {
      type: READY,
      status,
      reason,
      message,
      observedGeneration: generation,
    };
    const others = object.status?.conditions?.filter(({ type }) => type !== READY) ?? [];
    const lastTransitionTime =
      known?.status === status
        ? known.lastTransitionTime
        : new Date(this.#deps.now()).toISOString();
    await api.patch(`${this.#pathOf(object)}/status`, {
      metadata: { resourceVersion },
      status: { conditions: [{ ...condition, lastTransitionTime }, ...others] },
    });
  }

  #pathOf({ metadata }: ResourceObject): string {
    return objectPath(this.#deps.resource.plural, metadata);
  }
}

interface Granting<T> {
  readonly key: string;
  readonly reading: Reading<T>;
  readonly object: ResourceObject;
  readonly before: T | undefined;
}

const isFault = <T>(settled: Initialized<T> | Fault): settled is Fault => 'reason' in settled;
const isDenial = <T>(answer: Grant<T> | Denial): answer is Denial => 'reason' in answer;

const asksForTheSame = (
  before: Reading<unknown> | undefined,
  now: Reading<unknown> | undefined,
): boolean => {
  const [one, other] = [before, now].map((reading) => reading && objectOf(reading)?.metadata);
  return (
    one !== undefined &&
    other !== undefined &&
    one.uid === other.uid &&
    one.generation === other.generation &&
    isSameData(one.annotations, other.annotations)
  );
};

const objectOf = (reading: Reading<unknown>): ResourceObject | undefined => {
  if (reading.kind === 'uninitialized') return reading.object;
  return reading.kind === 'record' ? reading.asked?.object : undefined;
};

const isDone = (reading: Reading<unknown>): boolean =>
  reading.kind === 'too-new' ||
  reading.kind === 'ignored' ||
  (reading.kind === 'record' && !reading.asked && !reading.mended && !reading.unbound);
