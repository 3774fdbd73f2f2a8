import type { Log } from '../../contracts/log.ts';
import { NoPlace } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact, InstanceRecord, Vitals } from '../../model/sandbox.ts';
import { Images } from '../images/images.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import type { InstanceReport } from '../spawner/protocol.ts';

export interface Known {
  vitals: Vitals;
  reported: boolean;
  /** The spawner may not have the instance yet. */
  ordered: boolean;
  /** Every spawner that connects gets the kill again. */
  unwanted: boolean;
  /** Kept while it is starting; the stored record may move afterwards. */
  record: InstanceRecord | undefined;
  /** Key of the held image. */
  image?: string;
  /** The spawner has no order yet. */
  preparing?: boolean;
  over?: boolean;
}

export interface KnownInstancesDeps {
  readonly records: Pick<InstanceRecords, 'read'>;
  readonly images: Pick<Images, 'hold' | 'release'>;
  readonly log: Log;
  readonly kill: (id: InstanceId) => void;
  readonly gone: (id: InstanceId) => void;
}

/** Reports each change of a process with the instance's record. */
export class KnownInstances {
  readonly #deps: KnownInstancesDeps;
  readonly #known = new Map<InstanceId, Known>();
  readonly #ending = new Set<Promise<void>>();
  #report: (fact: InstanceFact) => void = () => {};

  constructor(deps: KnownInstancesDeps) {
    this.#deps = deps;
  }

  get counts(): { readonly instances: number; readonly ending: number } {
    return { instances: this.#known.size, ending: this.#ending.size };
  }

  get(id: InstanceId): Known | undefined {
    return this.#known.get(id);
  }

  isRunning(id: InstanceId): boolean {
    return this.#known.get(id)?.vitals.kind === 'available';
  }

  set(id: InstanceId, known: Known): void {
    this.#known.set(id, known);
  }

  follow(report: (fact: InstanceFact) => void): void {
    this.#report = report;
  }

  report(fact: InstanceFact): void {
    this.#report(fact);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#ending);
  }

  /** Throws NoPlace unless its end was ordered. */
  turnedAway(id: InstanceId, known: Known): void {
    if (known.unwanted)
      return this.fact(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'it was ended before it was started',
      });
    if (known.image !== undefined) this.#deps.images.release(known.image);
    known.over = true;
    this.#known.delete(id);
    throw new NoPlace('too many sandboxes are waiting to start on this machine');
  }

  end(id: InstanceId): void {
    const known = this.#known.get(id);
    if (known) known.unwanted = true;
    if (known?.preparing)
      this.fact(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'it was ended while its image was being prepared',
      });
    else this.#deps.kill(id);
  }

  /** Ends processes without a record. */
  reconcile(instances: readonly InstanceReport[]): void {
    const listed = new Map(instances.map((report) => [report.id, report.vitals]));
    for (const { id, image } of instances) this.#holdImage(id, image);
    for (const [id, known] of this.#known) {
      const vitals =
        listed.get(id) ??
        (known.ordered
          ? known.vitals
          : { kind: 'gone' as const, exitCode: null, reason: 'its process is gone' });
      this.fact(id, vitals);
      if (known.unwanted && listed.has(id)) this.#deps.kill(id);
    }
    for (const { id, programsEnded } of instances) {
      const known = this.#known.get(id);
      if (known && programsEnded !== undefined) this.#moved(id, known, { programsEnded });
    }
    for (const [id, vitals] of listed) {
      if (this.#known.has(id) || vitals.kind === 'gone') continue;
      this.#deps.log.warn({ id }, 'process-without-record-ended');
      this.#deps.kill(id);
    }
  }

  #holdImage(id: InstanceId, key: string | undefined): void {
    const known = this.#known.get(id);
    if (!known || key === undefined || known.image !== undefined) return;
    known.image = key;
    this.#deps.images.hold(key);
  }

  fact(id: InstanceId, vitals: Vitals, programsEnded?: string): void {
    const known = this.#known.get(id);
    if (!known) return;
    if (programsEnded !== undefined) return this.#moved(id, known, { programsEnded });
    if (vitals.kind === 'gone') return this.#ended(id, vitals);
    if (known.reported && sameVitals(known.vitals, vitals)) return;
    known.vitals = vitals;
    known.reported = true;
    const { record } = known;
    if (!record) return this.#moved(id, known);
    if (vitals.kind !== 'starting') known.record = undefined;
    this.#report({ id, record, vitals });
  }

  /** A claim may have changed the record. */
  #moved(id: InstanceId, known: Known, more?: Pick<InstanceFact, 'programsEnded'>): void {
    const reported = this.#deps.records.read(id).then(
      (stored) => {
        if (this.#known.get(id) === known)
          this.#report({ id, record: stored?.record, vitals: known.vitals, ...more });
      },
      (error: unknown) => this.#deps.log.error({ id, error }, 'readiness-not-reported'),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }

  /** The record may have changed since. */
  #ended(id: InstanceId, vitals: Vitals): void {
    const known = this.#known.get(id);
    if (known?.image !== undefined) this.#deps.images.release(known.image);
    if (known) known.over = true;
    this.#known.delete(id);
    this.#deps.gone(id);
    const reported = this.#deps.records.read(id).then(
      (stored) => this.#report({ id, record: stored?.record, vitals }),
      (error: unknown) => this.#deps.log.error({ id, error }, 'sandbox-end-not-reported'),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }
}

const sameVitals = (a: Vitals, b: Vitals): boolean =>
  a.kind === b.kind && reasonOf(a) === reasonOf(b);
const reasonOf = (vitals: Vitals): string | undefined =>
  vitals.kind === 'starting' ? vitals.reason : undefined;
