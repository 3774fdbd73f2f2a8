import { within, type Clock } from '../../contracts/clock.ts';
import type { ToldVisit } from '../../contracts/fleet/told-records.ts';
import type { LinkReports, ReportingLink } from '../../model/fleet/link-reports.ts';
import { AT_ONCE, inParts, StoreRetries, type Tried } from './store-retries.ts';

export interface RecordOrigin {
  readonly manager: string;
  readonly id: string;
}

/** Other than a failure of the store. */
export interface CopyProblem {
  readonly state: 'Conflict' | 'Refused';
  readonly message: string;
}

export interface WantedRecord<Told> extends RecordOrigin {
  readonly told: Told;
  /** A complete list overrides a later version known here. */
  isWhole: boolean;
  problem?: CopyProblem;
}

interface RecordChange<Told> {
  readonly records: readonly Told[];
  readonly gone: readonly string[];
  readonly isWhole: boolean;
}

export interface ReplicationTerms {
  readonly reports: LinkReports;
  readonly clock: Clock;
  readonly managers: number;
  /** Exceeds a manager's own limit, as new records may arrive before others end. */
  readonly most: number;
  readonly lookMs?: number;
}

const LOOK_MS = 60_000;
const ANSWER_MS = 10_000;

/**
 * Copies of managers' records of one kind. Reports take effect at once in memory. The store
 * follows, one change at a time, with retries; each try recomputes the copy from the latest
 * reports.
 */
export abstract class ReplicatedRecords<Told, Copy> {
  readonly #terms: ReplicationTerms;
  /** By manager, then by id. */
  readonly #wanted = new Map<string, Map<string, WantedRecord<Told>>>();
  readonly #dismissed = new Set<string>();
  /** By address, the manager that last authenticated there. */
  readonly #managerAt = new Map<string, string>();
  readonly #retries: StoreRetries;
  #doubted: ReadonlySet<string> = new Set();
  #work: Promise<void> = Promise.resolve();
  #callOff = (): void => undefined;
  #stopped = false;

  constructor(terms: ReplicationTerms) {
    this.#terms = terms;
    const inTurn = (work: () => Promise<void>): Promise<void> => this.#inTurn(work);
    this.#retries = new StoreRetries({ clock: terms.clock, inTurn });
  }

  protected abstract idOf(told: Told): string;
  protected abstract copies(): Iterable<Copy>;
  protected abstract originOf(copy: Copy): RecordOrigin;
  protected abstract keep(wanted: WantedRecord<Told>): Promise<Tried | CopyProblem>;
  /** Rejects if the copy must stay for now. */
  protected abstract remove(copy: Copy): Promise<unknown>;
  /** Called at a record's first failure. */
  protected abstract failed(origin: RecordOrigin, error: unknown): void;

  protected release(copy: Copy): Promise<unknown> {
    return this.remove(copy);
  }

  protected effectOn(_known: Told, _told: Told): 'none' | 'replaces' | 'late' {
    return 'none';
  }

  /** Never rejects. */
  protected async look(): Promise<void> {}

  /** Call after the copies are loaded. Without managers, drops all copies. Never rejects. */
  async start(): Promise<void> {
    if (this.#terms.managers === 0) await this.#dismiss(() => true);
    else this.#lookAndAgain();
  }

  stop(): void {
    this.#callOff();
    this.#retries.stop();
    this.#stopped = true;
  }

  /** Managers resend the copies once linked. */
  cutOff(): void {
    this.#terms.reports.cutOff();
    this.#managerAt.clear();
    void this.#dismiss(() => true);
  }

  leadsTo(address: string, manager: string): void {
    if (this.#managerAt.get(address) === manager) return;
    this.#managerAt.set(address, manager);
    void this.#dismissOthers();
  }

  protected visit(manager: string): ToldVisit<RecordChange<Told>> {
    const { reports } = this.#terms;
    this.#dismissed.delete(manager);
    const copies = this.#origins().filter((origin) => origin.manager === manager);
    const wanted = this.#wanted.get(manager)?.keys() ?? [];
    const link = reports.begin(manager, [...copies.map(({ id }) => id), ...wanted]);
    return {
      take: (change) => this.#take(link, change),
      caughtUp: async () => {
        const gone = reports.caughtUp(link);
        for (const id of gone) this.#wanted.get(manager)?.delete(id);
        await this.#settleInTime(gone.map((id) => ({ manager, id })));
        await within(this.#terms.clock, ANSWER_MS, this.#dismissOthers());
      },
      left: async () => {
        if (!(await this.#dismiss((each) => each === manager)))
          throw new Error('the store has copies from a manager that this cluster does not know');
      },
      end: () => {
        reports.end(link);
        void this.#dismissOthers();
      },
    };
  }

  protected wanted({ manager, id }: RecordOrigin): WantedRecord<Told> | undefined {
    return this.#wanted.get(manager)?.get(id);
  }

  protected isPending(origin: RecordOrigin): boolean {
    return this.#retries.has(nameOf(origin));
  }

  protected settleAgain(isMeant: (wanted: WantedRecord<Told>) => boolean): void {
    const wanted = [...this.#wanted.values()].flatMap((each) => [...each.values()]);
    void this.#settleInTime(wanted.filter(isMeant));
  }

  async #take(link: ReportingLink, change: RecordChange<Told>): Promise<void> {
    const { manager } = link;
    link.speaks = true;
    for (const id of change.gone) this.#forget(manager, id);
    const fresh = change.records.filter((told) => this.#want(link, told, change.isWhole));
    const ids = [...change.gone, ...fresh.map((told) => this.idOf(told))];
    await this.#settleInTime(ids.map((id) => ({ manager, id })));
  }

  #forget(manager: string, id: string): void {
    this.#terms.reports.reportGone(manager, id);
    this.#wanted.get(manager)?.delete(id);
  }

  /** False if the report is outdated or exceeds the limit. */
  #want(link: ReportingLink, told: Told, isWhole: boolean): boolean {
    const { reports, most } = this.#terms;
    const { manager } = link;
    const id = this.idOf(told);
    const wanted = this.#wanted.get(manager) ?? new Map<string, WantedRecord<Told>>();
    this.#wanted.set(manager, wanted);
    if ((!wanted.has(id) && wanted.size >= most) || !reports.report(link, id, isWhole))
      return false;
    for (const known of wanted.values()) {
      const effect = this.effectOn(known.told, told);
      if (effect === 'late' && !isWhole) return false;
      if (effect === 'replaces') this.#forget(manager, known.id);
    }
    wanted.set(id, { manager, id, told, isWhole });
    return true;
  }

  /** Waits until the manager at every address is known. */
  async #dismissOthers(): Promise<void> {
    if (this.#managerAt.size < this.#terms.managers) return;
    const managers = new Set(this.#managerAt.values());
    await this.#dismiss(
      (manager) => !managers.has(manager) && !this.#terms.reports.isLinked(manager),
    );
  }

  /** Resolves with false if the store still has some copies; retries follow. */
  async #dismiss(isMeant: (manager: string) => boolean): Promise<boolean> {
    const meant = this.#origins().filter(({ manager }) => isMeant(manager));
    for (const { manager, id } of meant) this.#terms.reports.endCopy(manager, id);
    for (const manager of [...this.#wanted.keys(), ...meant.map((each) => each.manager)]) {
      if (!isMeant(manager)) continue;
      this.#wanted.delete(manager);
      this.#dismissed.add(manager);
    }
    let isDone = true;
    await this.#inTurn(async () => {
      // also copies that were being written at the dismissal
      const left = this.#origins().filter(({ manager }) => this.#dismissed.has(manager));
      await inParts(left, AT_ONCE, async (origin) => {
        if (!(await this.#settle(origin)) && isMeant(origin.manager)) isDone = false;
      });
    });
    return isDone;
  }

  async #settleInTime(origins: readonly RecordOrigin[]): Promise<void> {
    const work = this.#inTurn(() => inParts(origins, AT_ONCE, (each) => this.#settle(each)));
    await within(this.#terms.clock, ANSWER_MS, work);
  }

  async #settle(origin: RecordOrigin): Promise<boolean> {
    const name = nameOf(origin);
    try {
      await this.#try(origin);
      this.#retries.forget(name);
      return true;
    } catch (error) {
      if (!this.#retries.has(name)) this.failed(origin, error);
      this.#retries.put(name, async () => this.#mayNotTry(origin) ?? (await this.#try(origin)));
      return false;
    }
  }

  /** Waits for a link that has not caught up. Never stores a record that no link wants. */
  #mayNotTry(origin: RecordOrigin): Tried | undefined {
    const { reports } = this.#terms;
    const { manager } = origin;
    if (this.#dismissed.has(manager) || reports.managers.includes(manager)) return undefined;
    if (reports.isLinked(manager)) return 'too early';
    return this.wanted(origin) ? 'moot' : undefined;
  }

  async #try(origin: RecordOrigin): Promise<Tried> {
    const { reports } = this.#terms;
    const { manager, id } = origin;
    const wanted = this.wanted(origin);
    if (wanted) return await this.#keep(wanted);
    const isDismissed = this.#dismissed.has(manager);
    if (!isDismissed && !reports.isOver(manager, id)) return 'moot';
    const isIt = (copy: Copy): boolean => nameOf(this.originOf(copy)) === nameOf(origin);
    const copy = [...this.copies()].find(isIt);
    if (!copy) return 'moot';
    reports.endCopy(manager, id);
    await (isDismissed ? this.release(copy) : this.remove(copy));
    return 'taken';
  }

  async #keep(wanted: WantedRecord<Told>): Promise<Tried> {
    const kept = await this.keep(wanted);
    if (typeof kept !== 'string') {
      wanted.problem = kept;
      return 'moot';
    }
    delete wanted.problem;
    wanted.isWhole = false;
    return kept;
  }

  #lookAndAgain(): void {
    const { clock, lookMs = LOOK_MS } = this.#terms;
    if (this.#stopped) return;
    this.#callOff = clock.at(clock.now() + lookMs, () => {
      void this.#inTurn(async () => {
        await this.#endDoubted();
        await this.look();
      }).finally(() => this.#lookAndAgain());
    });
  }

  /** Deletes copies that no link has reported at two consecutive checks. */
  async #endDoubted(): Promise<void> {
    const { reports } = this.#terms;
    const heard = new Set(reports.managers);
    const doubted = this.#origins().filter(
      ({ manager, id }) => heard.has(manager) && !reports.isReported(manager, id),
    );
    const ended = doubted.filter((origin) => this.#doubted.has(nameOf(origin)));
    this.#doubted = new Set(doubted.map(nameOf));
    for (const { manager, id } of ended) {
      reports.endCopy(manager, id);
      this.#wanted.get(manager)?.delete(id);
    }
    await inParts(ended, AT_ONCE, (origin) => this.#settle(origin));
  }

  #origins(): readonly RecordOrigin[] {
    return [...this.copies()].map((copy) => this.originOf(copy));
  }

  /** Never rejects, since `work` never does. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(() => (this.#stopped ? undefined : work()));
    return this.#work;
  }
}

const nameOf = ({ manager, id }: RecordOrigin): string => `${manager} ${id}`;
