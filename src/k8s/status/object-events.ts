import { randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { Allowance } from '../../lib/allowance.ts';
import type { ApiServer } from '../api/api-calls.ts';
import { isAbsent } from '../api/api-errors.ts';
import { API_VERSION, type Condition } from '../api/resource.ts';

export interface ObjectEventsDeps {
  readonly api: ApiServer;
  readonly clock: Clock;
  readonly log: Log;
  readonly replica: string;
}

export interface InvolvedObject {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

const MOST_OBJECTS = 1_000;
const MOST_WORDS = 16;
/** A burst, then one a minute. */
const EVENTS = { most: 10, perSecond: 1 / 60 };

interface Noted {
  readonly name: string;
  count: number;
}

interface Told {
  readonly allowance: Allowance;
  readonly words: Map<string, Noted>;
}

/**
 * Writes changes of conditions as Kubernetes events, for each object at most 10 at once and then
 * one a minute.
 */
export class ObjectEvents {
  readonly #deps: ObjectEventsDeps;
  readonly #told = new Map<string, Told>();

  constructor(deps: ObjectEventsDeps) {
    this.#deps = deps;
  }

  /** Never throws. */
  note(
    object: InvolvedObject,
    recordUid: string,
    {
      before,
      after,
    }: { readonly before: readonly Condition[]; readonly after: readonly Condition[] },
  ): void {
    for (const condition of after)
      if (isNews(condition, before)) this.#note(object, recordUid, condition);
  }

  forget(recordUid: string): void {
    this.#told.delete(recordUid);
  }

  #note(object: InvolvedObject, recordUid: string, condition: Condition): void {
    const { clock, log } = this.#deps;
    const told = this.#toldOf(recordUid);
    if (told.allowance.waitMs(clock.now()) > 0) return;
    told.allowance.spend(1, clock.now());
    this.#write(object, told.words, condition).catch((error: unknown) => {
      log.warn({ kind: object.kind, name: object.name, error }, 'object-event-not-written');
    });
  }

  #toldOf(recordUid: string): Told {
    const told = this.#told.get(recordUid) ?? {
      allowance: new Allowance({ ...EVENTS, most: EVENTS.most - 1 }, this.#deps.clock.now()),
      words: new Map<string, Noted>(),
    };
    this.#told.delete(recordUid);
    this.#told.set(recordUid, told);
    for (const oldest of this.#told.keys()) {
      if (this.#told.size <= MOST_OBJECTS) break;
      this.#told.delete(oldest);
    }
    return told;
  }

  async #write(
    object: InvolvedObject,
    words: Map<string, Noted>,
    { type, status, reason, message }: Condition,
  ): Promise<void> {
    const { api, clock, replica } = this.#deps;
    const events = api.lane('background');
    const path = `/api/v1/namespaces/${encodeURIComponent(object.namespace)}/events`;
    const lastTimestamp = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
    const text = `${type} is ${status}${message === '' ? '' : `: ${message}`}`;
    const word = `${reason} ${text}`;
    const known = words.get(word);
    if (known) {
      known.count += 1;
      const again = await events
        .patch(`${path}/${known.name}`, {
          count: known.count,
          lastTimestamp,
        })
        .catch((error: unknown) => {
          if (!isAbsent(error)) throw error; // the event has expired
          return undefined;
        });
      if (again !== undefined) return;
    }
    const name = `${object.name}.${randomBytes(8).toString('hex')}`;
    if (words.size >= MOST_WORDS) words.clear();
    words.set(word, { name, count: 1 });
    await events.create(path, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: object.namespace },
      involvedObject: { apiVersion: API_VERSION, ...objectOf(object) },
      type: isTrouble({ type, status }) ? 'Warning' : 'Normal',
      reason,
      message: text,
      count: 1,
      firstTimestamp: lastTimestamp,
      lastTimestamp,
      source: { component: 'sandpool' },
      reportingComponent: 'sandpool',
      reportingInstance: replica,
    });
  }
}

const objectOf = ({ kind, namespace, name, uid }: InvolvedObject): InvolvedObject => ({
  kind,
  namespace,
  name,
  uid,
});

/** No event when a condition first appears with this status. */
const USUAL: Readonly<Record<string, string>> = {
  TemplateResolved: 'True',
  MembersSynced: 'True',
  QuotaOk: 'True',
  Progressing: 'False',
  Degraded: 'False',
  ScalingLimited: 'False',
};

const isNews = ({ type, status, reason }: Condition, before: readonly Condition[]): boolean => {
  const earlier = before.find((one) => one.type === type);
  return earlier ? earlier.status !== status || earlier.reason !== reason : USUAL[type] !== status;
};

/** `Ready` reports that something is missing; the other conditions say why. */
const isTrouble = ({ type, status }: Pick<Condition, 'type' | 'status'>): boolean =>
  type === 'Degraded'
    ? status === 'True'
    : (type === 'TemplateResolved' || type === 'QuotaOk') && status === 'False';
