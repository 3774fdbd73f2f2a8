import type { Log } from '../../contracts/log.ts';
import { NoPlace } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact, InstanceRecord, Vitals } from '../../model/sandbox.ts';
import { Images } from '../images/images.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import type { InstanceReport } from '../spawner/protocol.ts';

/** An instance whose process the spawner has, or will have soon. */
export interface Known {
  vitals: Vitals;
  /** The driver has reported these vitals. */
  reported: boolean;
  /** The start is in progress: the spawner may not have the instance yet. */
  ordered: boolean;
  /** The instance must end; every spawner that connects gets the kill again. */
  unwanted: boolean;
  /** Kept while the instance is starting. The stored record may move afterwards. */
  record: InstanceRecord | undefined;
  /** Key of the image that this instance holds. */
  image?: string;
  /** The image is being prepared: the spawner has no order for the instance yet. */
  preparing?: boolean;
  over?: boolean;
}

export interface KnownInstancesDeps {
  readonly records: Pick<InstanceRecords, 'read'>;
  readonly images: Pick<Images, 'hold' | 'release'>;
  readonly log: Log;
  /** Makes the spawner end the instance. */
  readonly kill: (id: InstanceId) => void;
  /** Notifies other parts that the instance is gone. */
  readonly gone: (id: InstanceId) => void;
}

/** Instances of this machine. Reports each change of a process, with the instance's record. */
export class KnownInstances {
  readonly #deps: KnownInstancesDeps;
  readonly #known = new Map<InstanceId, Known>();
  readonly #ending = new Set<Promise<void>>();
  #report: (fact: InstanceFact) => void = () => {};

  constructor(deps: KnownInstancesDeps) {
    this.#deps = deps;
  }

  /** Counts the known instances, and the ends that are being reported. */
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

  /** Reports changes to `report` from now on. */
  follow(report: (fact: InstanceFact) => void): void {
    this.#report = report;
  }

  report(fact: InstanceFact): void {
    this.#report(fact);
  }

  /** Resolves after all pending ends are reported. */
  async settled(): Promise<void> {
    await Promise.all(this.#ending);
  }

  /** Drops an instance that the full queue refused. Throws NoPlace unless its end was ordered. */
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

  /** Ends the instance as soon as the spawner can. */
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

  /**
   * Compares the spawner's list with the known instances. Reports differences, and ends processes
   * without a record.
   */
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

  /** Holds the image of a sandbox that was found running, unless it is held already. */
  #holdImage(id: InstanceId, key: string | undefined): void {
    const known = this.#known.get(id);
    if (!known || key === undefined || known.image !== undefined) return;
    known.image = key;
    this.#deps.images.hold(key);
  }

  /** Applies the spawner's report about an instance. */
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

  /**
   * Reports a change of an available instance. Reads the record again, because a claim may have
   * changed it.
   */
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

  /** Reads the record again: the instance may have been claimed, released or retired since. */
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
