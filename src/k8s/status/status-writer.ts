import { isSameData } from '../../lib/plain-data.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type {
  PublishedKind,
  PublishedStatus,
  StatusPublisher,
  StatusSource,
} from '../../contracts/record-store.ts';
import type { ApiServer } from '../api/api-calls.ts';
import { isRefused } from '../api/api-errors.ts';
import {
  objectPath,
  READY,
  type Condition,
  type ObjectStatus,
  verdictIn,
  type StandingObject,
} from '../api/resource.ts';
import type { ObjectEvents } from './object-events.ts';

export interface StandingObjects {
  readonly kind: string;
  readonly plural: string;
  readonly standing: (key: string) => StandingObject | undefined;
  readonly added: (uid: string) => Readonly<Record<string, string>>;
}

export interface StatusWriterDeps {
  readonly api: ApiServer;
  readonly clock: Clock;
  readonly log: Log;
  readonly objects: Readonly<Record<PublishedKind, StandingObjects>>;
  readonly events: Pick<ObjectEvents, 'note' | 'forget'>;
}

/** Between two writes of one object. */
const EVERY_MS = 1_000;
/** Changes come in groups, so wait for more. */
const SETTLING_MS = 100;
const PENDING_AGAIN_MS = 5_000;
const LONGEST_PAUSE_MS = 30_000;
const LONGEST_MESSAGE = 1_024;

interface Entry {
  readonly kind: PublishedKind;
  readonly uid: string;
  callOff: (() => void) | undefined;
  dueAt: number;
  writtenAt: number;
  failures: number;
}

/**
 * Writes the status of the pools and envs that this replica leads, never on connections of claims.
 * Compares it with the mirrored object, so that another writer, a lost answer or a new leader only
 * needs another check. Retries failures after 1 s and then longer, up to 30 s.
 */
export class StatusWriter implements StatusPublisher {
  readonly #deps: StatusWriterDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #due = new Set<Entry>();
  #source: StatusSource = () => undefined;
  #running = false;
  #stopped = false;

  constructor(deps: StatusWriterDeps) {
    this.#deps = deps;
  }

  publish(source: StatusSource): void {
    this.#source = source;
  }

  changed(kind: PublishedKind, uid: string): void {
    if (this.#stopped) return;
    const key = `${kind}/${uid}`;
    const known = this.#entries.get(key);
    const entry = known ?? {
      kind,
      uid,
      callOff: undefined,
      dueAt: 0,
      writtenAt: Number.NEGATIVE_INFINITY,
      failures: 0,
    };
    if (known === undefined) this.#entries.set(key, entry);
    if (this.#due.has(entry)) return;
    const moment = Math.max(this.#deps.clock.now() + SETTLING_MS, entry.writtenAt + EVERY_MS);
    // Neither shortens the pause after a failure nor delays an existing check.
    if (entry.callOff && (entry.failures > 0 || entry.dueAt <= moment)) return;
    this.#lookAt(entry, moment);
  }

  stop(): void {
    this.#stopped = true;
    for (const { callOff } of this.#entries.values()) callOff?.();
    this.#entries.clear();
    this.#due.clear();
  }

  #lookAt(entry: Entry, moment: number): void {
    entry.callOff?.();
    entry.callOff = undefined;
    if (this.#stopped) return;
    entry.dueAt = moment;
    entry.callOff = this.#deps.clock.at(moment, () => {
      entry.callOff = undefined;
      this.#due.add(entry);
      if (!this.#running)
        this.#run().catch((error: unknown) => {
          this.#deps.log.error({ error }, 'statuses-not-written');
        });
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      for (const entry of this.#due) {
        this.#due.delete(entry);
        await this.#attempt(entry);
      }
    } finally {
      this.#running = false;
    }
  }

  /** Never rejects. */
  async #attempt(entry: Entry): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      const outcome = await this.#write(entry);
      entry.failures = 0;
      if (entry.callOff) return; // changed in the meantime
      if (outcome === 'written') this.#lookAt(entry, entry.writtenAt + EVERY_MS);
      else if (outcome === 'pending') this.#lookAt(entry, clock.now() + PENDING_AGAIN_MS);
      else this.#entries.delete(`${entry.kind}/${entry.uid}`);
    } catch (error) {
      entry.failures += 1;
      // Another write came first, or the object is gone; the next check sees it.
      if (!isRefused(error, 409) && !isRefused(error, 404) && entry.failures === 1)
        log.warn({ entity: entry.kind, uid: entry.uid, error }, 'object-status-not-written');
      const pause = Math.min(LONGEST_PAUSE_MS, EVERY_MS * 2 ** (entry.failures - 1));
      this.#lookAt(entry, clock.now() + pause);
    }
  }

  async #write(entry: Entry): Promise<'written' | 'pending' | 'settled'> {
    const { api, clock, objects, events } = this.#deps;
    await api.calm('claims');
    const wanted = this.#source(entry.kind, entry.uid);
    const { kind, plural, standing, added } = objects[entry.kind];
    const object = wanted && standing(`${wanted.namespace}/${wanted.name}`);
    if (!object) {
      events.forget(entry.uid);
      return 'settled';
    }
    const fields = { ...wanted.fields, ...added(entry.uid) };
    const status = statusOf({ ...wanted, fields }, { kind, ...object }, clock.now());
    if (status === undefined || isSameData(status, { ...object.status }))
      return wanted.pending ? 'pending' : 'settled';
    entry.writtenAt = clock.now();
    await api.lane('background').patch(`${objectPath(plural, wanted)}/status`, {
      metadata: { resourceVersion: object.resourceVersion },
      status,
    });
    events.note({ kind, ...wanted, uid: object.uid }, entry.uid, {
      before: object.status?.conditions ?? [],
      after: status.conditions ?? [],
    });
    return 'written';
  }
}

/**
 * Undefined while a size requested by hand is neither granted nor denied: the object's generation
 * is not observed until then.
 */
const statusOf = (
  { fields, conditions, undecided }: PublishedStatus,
  {
    kind,
    status: before,
    generation,
  }: Pick<StandingObject, 'status' | 'generation'> & { readonly kind: string },
  now: number,
): ObjectStatus | undefined => {
  const known = before?.conditions ?? [];
  const verdict = verdictIn(kind, known);
  if (undecided && !verdict) return undefined;
  const said = conditions.map(({ type, message, ...word }): Condition => {
    if (type === READY && undecided && verdict) return verdict;
    const earlier = known.find((one) => one.type === type);
    return {
      type,
      ...word,
      message: message.slice(0, LONGEST_MESSAGE),
      observedGeneration: generation,
      lastTransitionTime:
        earlier?.status === word.status
          ? earlier.lastTransitionTime
          : new Date(now - (now % 1_000)).toISOString().replace('.000Z', 'Z'),
    };
  });
  const others = known.filter(({ type }) => !said.some((one) => one.type === type));
  return { ...before, ...fields, conditions: [...said, ...others] };
};
