import { RecentSet } from '../../lib/recent-set.ts';

const MOST_OVER = 10_000;

/** One link to a manager, from the proof of the manager's identity until the link ends. */
export interface ReportingLink {
  readonly manager: string;
  /** Whether it has begun to report records. */
  speaks: boolean;
  isCaughtUp: boolean;
  /** Records that it reported and has not reported as gone. */
  readonly good: Set<string>;
  /** Copies that existed at its start, and may be gone at the manager; empty once caught up. */
  readonly stood: Set<string>;
  /** Records that ended during the link: its reports of them may be outdated. */
  readonly ended: Set<string>;
}

/**
 * Tracks the records that each manager of a worker reports. Each replica of a manager reports over
 * its own link, in its own order. So a record is valid while any caught-up link reports it. A
 * report that a record is gone is final, unless a later complete list has the record. A copy that
 * ended otherwise becomes valid again after a new report that can't be late.
 */
export class LinkReports {
  readonly #links = new Set<ReportingLink>();
  /** Reported as gone, even if the store still has the copy: by manager and record. */
  readonly #gone = new RecentSet(MOST_OVER);
  /** Ended until reported again: by manager and record. */
  readonly #ended = new RecentSet(MOST_OVER);
  readonly #heard = new Set<string>();
  #isCutOff = false;

  /** The managers are cut off, and none has linked since. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  cutOff(): void {
    this.#isCutOff = true;
  }

  /** A manager proved its identity. `stood`: its records that have copies here. */
  begin(manager: string, stood: Iterable<string>): ReportingLink {
    const link: ReportingLink = {
      ...{ manager, speaks: false, isCaughtUp: false, stood: new Set(stood) },
      ...{ good: new Set<string>(), ended: new Set<string>() },
    };
    this.#links.add(link);
    this.#isCutOff = false;
    return link;
  }

  /**
   * A link reports a record; false if the report is late and ignored. `isWhole`: the record is part
   * of a manager's complete list. The manager may have been restored.
   */
  report(link: ReportingLink, id: string, isWhole: boolean): boolean {
    const name = nameOf(link.manager, id);
    if (isWhole) this.#gone.delete(name);
    if (this.#gone.has(name) || link.ended.has(id)) return false;
    link.good.add(id);
    this.#ended.delete(name);
    return true;
  }

  /** A manager reports that the record is gone. */
  reportGone(manager: string, id: string): void {
    this.#gone.add(nameOf(manager, id));
    for (const { good } of this.#linksTo(manager)) good.delete(id);
  }

  /** Ends the copy until a link reports the record again. */
  endCopy(manager: string, id: string): void {
    this.#ended.add(nameOf(manager, id));
    for (const { good } of this.#linksTo(manager)) good.delete(id);
  }

  /**
   * The link has reported the manager's complete list. Returns the records that are gone: those
   * that existed at the start of the link, before its list was read, and are not in the list. Other
   * links' later reports may be newer than the list.
   */
  caughtUp(link: ReportingLink): readonly string[] {
    const gone = [...link.stood].filter((id) => !link.good.has(id));
    for (const id of gone) {
      this.endCopy(link.manager, id);
      for (const { ended } of this.#linksTo(link.manager)) ended.add(id);
    }
    link.stood.clear();
    this.#heard.add(link.manager);
    link.isCaughtUp = true;
    return gone;
  }

  end(link: ReportingLink): void {
    this.#links.delete(link);
  }

  /** Whether the record was reported as gone, or ended otherwise and was not reported again. */
  isOver(manager: string, id: string): boolean {
    const name = nameOf(manager, id);
    return this.#gone.has(name) || this.#ended.has(name);
  }

  /** Whether a caught-up link reports the record. */
  isReported(manager: string, id: string): boolean {
    return this.#linksTo(manager).some(({ isCaughtUp, good }) => isCaughtUp && good.has(id));
  }

  /** Managers with a caught-up link. */
  get managers(): readonly string[] {
    const caughtUp = [...this.#links].filter(({ isCaughtUp }) => isCaughtUp);
    return [...new Set(caughtUp.map(({ manager }) => manager))]; // each has a link per replica
  }

  isLinked(manager: string): boolean {
    return this.#linksTo(manager).length > 0;
  }

  /** Whether a link to the manager has begun to report. */
  isSpeaking(manager: string): boolean {
    return this.#linksTo(manager).some(({ speaks }) => speaks);
  }

  /** Whether a link to the manager has caught up since the start. */
  wasHeard(manager: string): boolean {
    return this.#heard.has(manager);
  }

  #linksTo(manager: string): readonly ReportingLink[] {
    return [...this.#links].filter((link) => link.manager === manager);
  }
}

const nameOf = (manager: string, id: string): string => `${manager} ${id}`;
