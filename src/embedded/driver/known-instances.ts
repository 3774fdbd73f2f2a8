import type { Log } from '../../contracts/log.ts';
import { NoPlace } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact, InstanceRecord, Vitals } from '../../model/sandbox.ts';
import { Images } from '../images/images.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import type { InstanceReport } from '../spawner/protocol.ts';

/** An instance whose process the spawner has, or soon will. */
export interface Known {
  vitals: Vitals;
  /** The vitals were reported. */
  reported: boolean;
  /** Its start is under way and not yet answered: the spawner need not have it. */
  ordered: boolean;
  /** It is to end, so that is asked of each spawner anew. */
  unwanted: boolean;
  /** As long as it is starting: then its record may move. */
  record: InstanceRecord | undefined;
  /** The key of its image, which is held for it. */
  image?: string;
  /** Its image is being made ready: the spawner has not heard of it yet. */
  preparing?: boolean;
  over?: boolean;
}

export interface KnownInstancesDeps {
  readonly records: Pick<InstanceRecords, 'read'>;
  readonly images: Pick<Images, 'hold' | 'release'>;
  readonly log: Log;
  /** Has the spawner end it. */
  readonly kill: (id: InstanceId) => void;
  /** It is gone: whatever else knows of it forgets it. */
  readonly gone: (id: InstanceId) => void;
}

/** The instances of this machine: reports each change of their processes, with the record. */
export class KnownInstances {
  readonly #deps: KnownInstancesDeps;
  readonly #known = new Map<InstanceId, Known>();
  readonly #ending = new Set<Promise<void>>();
  #report: (fact: InstanceFact) => void = () => {};

  constructor(deps: KnownInstancesDeps) {
    this.#deps = deps;
  }

  /** Counts those that are known, and the ends that are being reported. */
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

  /** Has changes reported to `report` from now on. */
  follow(report: (fact: InstanceFact) => void): void {
    this.#report = report;
  }

  report(fact: InstanceFact): void {
    this.#report(fact);
  }

  /** Resolves once the ends that are under way have been reported. */
  async settled(): Promise<void> {
    await Promise.all(this.#ending);
  }

  /** Too many wait to be started, which is no fault of the instance's. */
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
    throw new NoPlace('too many sandboxes wait to be started on this machine');
  }

  /** Has it end, soon or at once. */
  end(id: InstanceId): void {
    const known = this.#known.get(id);
    if (known) known.unwanted = true;
    if (known?.preparing)
      this.fact(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'it was ended while its image was made ready',
      });
    else this.#deps.kill(id);
  }

  /**
   * Compares what the spawner has with what is known: reports differences, and ends processes
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
      this.#deps.log.warn({ id }, 'a process without a record was ended');
      this.#deps.kill(id);
    }
  }

  /** Holds the image of a sandbox that was found running, where none is held for it yet. */
  #holdImage(id: InstanceId, key: string | undefined): void {
    const known = this.#known.get(id);
    if (!known || key === undefined || known.image !== undefined) return;
    known.image = key;
    this.#deps.images.hold(key);
  }

  /** Takes in what the spawner says of one. */
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
   * Its readiness changed after it was available, or more is told of it: the record is read, since
   * it may have been claimed since.
   */
  #moved(id: InstanceId, known: Known, more?: Pick<InstanceFact, 'programsEnded'>): void {
    const reported = this.#deps.records.read(id).then(
      (stored) => {
        if (this.#known.get(id) === known)
          this.#report({ id, record: stored?.record, vitals: known.vitals, ...more });
      },
      (error: unknown) =>
        this.#deps.log.error(
          { id, error },
          'the readiness of a sandbox cannot be reported: its record cannot be read',
        ),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }

  /** The record is read again: it may have been claimed, released or retired since. */
  #ended(id: InstanceId, vitals: Vitals): void {
    const known = this.#known.get(id);
    if (known?.image !== undefined) this.#deps.images.release(known.image);
    if (known) known.over = true;
    this.#known.delete(id);
    this.#deps.gone(id);
    const reported = this.#deps.records.read(id).then(
      (stored) => this.#report({ id, record: stored?.record, vitals }),
      (error: unknown) =>
        this.#deps.log.error(
          { id, error },
          'the end of a sandbox cannot be reported: its record cannot be read',
        ),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }
}

const sameVitals = (a: Vitals, b: Vitals): boolean =>
  a.kind === b.kind && reasonOf(a) === reasonOf(b);
const reasonOf = (vitals: Vitals): string | undefined =>
  vitals.kind === 'starting' ? vitals.reason : undefined;
