import { RecentSet } from '../../lib/recent-set.ts';

const MOST_OVER = 10_000;

export interface ReportingLink {
  readonly manager: string;
  speaks: boolean;
  isCaughtUp: boolean;
  /** Reported, and not reported as gone. */
  readonly good: Set<string>;
  /** Copies from before its start that may be gone at the manager. */
  readonly stood: Set<string>;
  /** Ended during the link: its reports of them may be outdated. */
  readonly ended: Set<string>;
}

/**
 * Each replica of a manager reports over its own link, in its own order. So a record is valid while
 * any caught-up link reports it. A report that a record is gone is final, unless a later complete
 * list has it. A copy that ended otherwise becomes valid again after a report that can't be late.
 */
export class LinkReports {
  readonly #links = new Set<ReportingLink>();
  /** By manager and record, even if the store still has the copy. */
  readonly #gone = new RecentSet(MOST_OVER);
  /** By manager and record, until reported again. */
  readonly #ended = new RecentSet(MOST_OVER);
  readonly #heard = new Set<string>();
  #isCutOff = false;

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  cutOff(): void {
    this.#isCutOff = true;
  }

  /** `stood`: its records that have copies here. */
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
   * False if the report is late. `isWhole`: part of a complete list; the manager may have been
   * restored.
   */
  report(link: ReportingLink, id: string, isWhole: boolean): boolean {
    const name = nameOf(link.manager, id);
    if (isWhole) this.#gone.delete(name);
    if (this.#gone.has(name) || link.ended.has(id)) return false;
    link.good.add(id);
    this.#ended.delete(name);
    return true;
  }

  reportGone(manager: string, id: string): void {
    this.#gone.add(nameOf(manager, id));
    for (const { good } of this.#linksTo(manager)) good.delete(id);
  }

  endCopy(manager: string, id: string): void {
    this.#ended.add(nameOf(manager, id));
    for (const { good } of this.#linksTo(manager)) good.delete(id);
  }

  /**
   * Returns the records that are gone: they existed at the start of the link and are not in the
   * list. Other links' later reports may be newer.
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

  isOver(manager: string, id: string): boolean {
    const name = nameOf(manager, id);
    return this.#gone.has(name) || this.#ended.has(name);
  }

  isReported(manager: string, id: string): boolean {
    return this.#linksTo(manager).some(({ isCaughtUp, good }) => isCaughtUp && good.has(id));
  }

  get managers(): readonly string[] {
    const caughtUp = [...this.#links].filter(({ isCaughtUp }) => isCaughtUp);
    return [...new Set(caughtUp.map(({ manager }) => manager))]; // each has a link per replica
  }

  isLinked(manager: string): boolean {
    return this.#linksTo(manager).length > 0;
  }

  isSpeaking(manager: string): boolean {
    return this.#linksTo(manager).some(({ speaks }) => speaks);
  }

  wasHeard(manager: string): boolean {
    return this.#heard.has(manager);
  }

  #linksTo(manager: string): readonly ReportingLink[] {
    return [...this.#links].filter((link) => link.manager === manager);
  }
}

const nameOf = (manager: string, id: string): string => `${manager} ${id}`;
