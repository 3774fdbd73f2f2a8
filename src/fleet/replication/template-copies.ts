import { isSameData } from '../../lib/plain-data.ts';
import { within, type Clock } from '../../contracts/clock.ts';
import type {
  CopyReport,
  GlobalTemplateChange,
  GlobalTemplateCopies,
  ToldTemplate,
} from '../../contracts/fleet/global-templates.ts';
import type { ToldVisit } from '../../contracts/fleet/told-records.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordExists, type Records } from '../../contracts/record-store.ts';
import { RecordConflict, type SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { isCopy } from '../../model/templates/global-template.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';
import { poolsMadeFrom } from '../../services/templates/pools-made-from.ts';
import type { TemplateCatalog } from '../../actors/pool/template-catalog.ts';
import { readToldTemplate } from './told-template.ts';

export interface TemplateCopiesDeps {
  readonly templates: Records<TemplateRecord>;
  readonly catalog: TemplateCatalog;
  readonly pools: Pick<Records<PoolRecord>, 'list'>;
  readonly driver: Pick<SandboxDriver, 'check' | 'expect'>;
  readonly clock: Clock;
  readonly log: Log;
  /** How many addresses of managers this cluster has. */
  readonly managers: number;
}

/** Holds what a manager wants here, until it says otherwise. */
interface Wanted {
  readonly told: ToldTemplate;
  /** It counts also where a later version is known here. */
  isWhole: boolean;
  problem?: { readonly state: 'Pending' | 'Conflict' | 'Refused'; readonly message: string };
}

/** A word is answered after so long, whatever the store does. */
const ANSWER_MS = 10_000;
/** After a write that failed, and twice as long each time. */
const AGAIN_MS = 5_000;
const MOST_AGAIN_MS = 300_000;
const MOST_GONE = 10_000;
const MOST_POOLS_NAMED = 50;

/**
 * Keeps copies of managers' global templates among the templates of this cluster, so that they are
 * there like those, also while no manager can be reached. A template of the cluster's own is left
 * alone. A copy goes once its manager has it no more and no pool is made from it. What a cluster
 * that leaves its manager has is its own from then on.
 */
export class TemplateCopies implements GlobalTemplateCopies {
  readonly #deps: TemplateCopiesDeps;
  /** By manager, by id. */
  readonly #wanted = new Map<string, Map<string, Wanted>>();
  /** Managers of which all is known. */
  readonly #complete = new Set<string>();
  /** Ended ids, by manager: what is late of them is not taken. */
  readonly #gone = new RecentSet(MOST_GONE);
  /** Managers that know this cluster no more, until what is of them is the cluster's own. */
  readonly #left = new Set<string>();
  /** The manager that proved last to be at an address. */
  readonly #managerAt = new Map<string, string>();
  #work: Promise<void> = Promise.resolve();
  #waitMs = AGAIN_MS;
  #callOff: (() => void) | undefined;
  #stopped = false;
  #isCutOff = false;

  constructor(deps: TemplateCopiesDeps) {
    this.#deps = deps;
  }

  /** Once the templates are known. */
  start(): void {
    this.#deps.catalog.follow(({ record: { name } }) => {
      for (const [manager, wanted] of this.#wanted)
        for (const [id, { told, problem }] of wanted)
          if (told.name === name && problem?.state !== 'Refused')
            this.#inTurn(() => this.#settle(manager, id)).catch(() => undefined);
    });
    if (this.#deps.managers === 0) void this.#inTurn(() => this.#release(() => true));
  }

  /** Writes nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#callOff?.();
  }

  /** Makes all copies the cluster's own, until managers are linked again: all links are over. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#managerAt.clear();
    void this.#inTurn(async () => {
      for (const manager of this.#wanted.keys()) this.#forget(manager);
      if (this.#isCutOff) await this.#release(() => true);
    });
  }

  leadsTo(address: string, manager: string): void {
    if (this.#managerAt.get(address) === manager) return;
    this.#managerAt.set(address, manager);
    void this.#inTurn(() => this.#releaseOthers());
  }

  begin(manager: string): ToldVisit<GlobalTemplateChange> {
    this.#isCutOff = false;
    this.#left.delete(manager);
    let isOver = false;
    return {
      take: (change) => this.#answered(() => this.#take(manager, change)),
      caughtUp: (ids) =>
        this.#answered(async () => {
          if (!isOver) await this.#caughtUp(manager, ids);
        }),
      left: () =>
        this.#answered(async () => {
          this.#forget(manager);
          this.#left.add(manager);
          await this.#releaseLeft();
        }),
      end: () => {
        isOver = true;
      },
    };
  }

  async report(manager: string, globalId: string): Promise<CopyReport> {
    const wanted = this.#wanted.get(manager)?.get(globalId);
    const record = this.#copiesOf(manager).find((each) => each.globalId === globalId);
    const pools = record ? await this.#poolsOf(record.name) : [];
    const { version } = record ?? {};
    const shown = { version, pools };
    if (wanted?.problem) return { ...shown, ...wanted.problem };
    if (!record) return { state: wanted ? 'Pending' : 'Absent', pools };
    if (wanted) return { ...shown, state: 'Synced' };
    return { ...shown, state: 'Pending', message: 'it goes once no pool is made from it' };
  }

  /** Resolves once it is done, or after 10 s: what is not done by then is tried again. */
  async #answered(work: () => Promise<void>): Promise<void> {
    await within(this.#deps.clock, ANSWER_MS, this.#inTurn(work));
  }

  /** Never rejects. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work
      .then(() => (this.#stopped ? undefined : work()))
      .catch((error: unknown) => this.#failed(error));
    return this.#work;
  }

  async #take(manager: string, { templates, gone, whole }: GlobalTemplateChange): Promise<void> {
    const wanted = this.#wanted.get(manager) ?? new Map<string, Wanted>();
    this.#wanted.set(manager, wanted);
    for (const id of gone) {
      this.#gone.add(`${manager} ${id}`);
      wanted.delete(id);
    }
    for (const told of templates) {
      const isWhole = whole !== undefined;
      const known = wanted.get(told.globalId);
      if (isWhole) this.#gone.delete(`${manager} ${told.globalId}`);
      // a word of another replica of the manager, which was late
      if (this.#gone.has(`${manager} ${told.globalId}`)) continue;
      if (!isWhole && known && isLater(known.told, told)) continue;
      for (const [id, other] of wanted)
        if (id !== told.globalId && other.told.name === told.name) {
          this.#gone.add(`${manager} ${id}`);
          wanted.delete(id);
        }
      wanted.set(told.globalId, { told, isWhole });
      await this.#settle(manager, told.globalId);
    }
    await this.#endGone(manager);
  }

  async #caughtUp(manager: string, ids: ReadonlySet<string>): Promise<void> {
    const wanted = this.#wanted.get(manager) ?? new Map<string, Wanted>();
    for (const id of wanted.keys()) if (!ids.has(id)) wanted.delete(id);
    this.#complete.add(manager);
    await this.#endGone(manager);
    await this.#releaseOthers();
  }

  /** Has one of them be here as it is wanted, or notes why it is not. Never rejects. */
  async #settle(manager: string, id: string): Promise<void> {
    const wanted = this.#wanted.get(manager)?.get(id);
    if (!wanted) return;
    const before = wanted.problem;
    try {
      const problem = await this.#keep(manager, wanted);
      delete wanted.problem;
      if (problem) wanted.problem = problem;
      else wanted.isWhole = false;
    } catch (error) {
      wanted.problem = { state: 'Pending', message: 'its store did not take it yet' };
      this.#failed(error);
      if (isOvertaken(error)) return; // another replica wrote it: it is looked at again
    }
    const { problem, told } = wanted;
    if (!problem || isSameData(problem, before)) return;
    const { name, version } = told;
    this.#deps.log.warn(
      { template: name, version, why: problem.message },
      'a template of the manager is not kept',
    );
  }

  async #keep(manager: string, { told, isWhole }: Wanted): Promise<Wanted['problem']> {
    const { templates, driver, log } = this.#deps;
    const known = await templates.get(told.name);
    if (known && !isOf(known, manager, told.globalId))
      return { state: 'Conflict', message: `a template ${told.name} of another is in its way` };
    if (known?.globalId === told.globalId && !isWhole && isLater(known, told)) return undefined;
    const read = readToldTemplate(told, (definition) => driver.check(definition));
    if ('fault' in read) return { state: 'Refused', message: read.fault };
    const wanted = { ...read.template, managedBy: manager };
    if (known && isSame(known, wanted)) return undefined;
    if (known) await templates.update({ ...wanted, revision: known.revision });
    else await templates.create(wanted);
    driver.expect(read.definition);
    log.info(
      { template: wanted.name, version: wanted.version },
      'a template of the manager is here',
    );
    return undefined;
  }

  /** Ends copies that their manager has no more, unless a pool is made from them. */
  async #endGone(manager: string): Promise<void> {
    if (!this.#complete.has(manager)) return;
    const wanted = this.#wanted.get(manager);
    const gone = this.#copiesOf(manager).filter(({ globalId = '' }) => !wanted?.has(globalId));
    await eachOf(gone, async (copy) => {
      const users = await this.#poolsOf(copy.name);
      if (users.length > 0) this.#tryAgain();
      else await this.#deps.templates.remove(copy);
    });
  }

  /** Makes what is of managers that know this cluster no more its own. */
  async #releaseLeft(): Promise<void> {
    await this.#release(({ managedBy = '' }) => this.#left.has(managedBy));
    this.#left.clear();
  }

  /** Makes what is of managers that this cluster has no more its own. */
  async #releaseOthers(): Promise<void> {
    if (this.#managerAt.size < this.#deps.managers) return;
    const managers = new Set(this.#managerAt.values());
    for (const manager of this.#wanted.keys()) if (!managers.has(manager)) this.#forget(manager);
    await this.#release(({ managedBy = '' }) => !managers.has(managedBy));
  }

  async #release(isMeant: (copy: TemplateRecord) => boolean): Promise<void> {
    const { catalog, templates } = this.#deps;
    const meant = [...catalog.values()].filter((copy) => isCopy(copy) && isMeant(copy));
    await eachOf(meant, (copy) => templates.update({ ...copy, managedBy: '' }));
  }

  #forget(manager: string): void {
    this.#wanted.delete(manager);
    this.#complete.delete(manager);
  }

  #failed(error: unknown): void {
    if (!isOvertaken(error))
      this.#deps.log.warn({ error }, 'templates of the manager could not be written');
    this.#tryAgain();
  }

  #tryAgain(): void {
    const { clock } = this.#deps;
    if (this.#callOff || this.#stopped) return;
    this.#callOff = clock.at(clock.now() + this.#waitMs, () => {
      this.#callOff = undefined;
      this.#waitMs = Math.min(this.#waitMs * 2, MOST_AGAIN_MS);
      void this.#inTurn(() => this.#lookAgain());
    });
  }

  async #lookAgain(): Promise<void> {
    for (const [manager, wanted] of this.#wanted)
      for (const [id, { problem }] of wanted)
        if (problem?.state === 'Pending') await this.#settle(manager, id);
    const isAlone = this.#deps.managers === 0 || this.#isCutOff;
    await eachOf(
      [
        ...[...this.#wanted.keys()].map((manager) => () => this.#endGone(manager)),
        () => this.#releaseLeft(),
        () => (isAlone ? this.#release(() => true) : this.#releaseOthers()),
      ],
      (step) => step(),
    );
    if (!this.#callOff) this.#waitMs = AGAIN_MS;
  }

  #copiesOf(manager: string): readonly TemplateRecord[] {
    return [...this.#deps.catalog.values()].filter(({ managedBy }) => managedBy === manager);
  }

  async #poolsOf(name: string): Promise<CopyReport['pools']> {
    return (await poolsMadeFrom(this.#deps.pools, name)).slice(0, MOST_POOLS_NAMED);
  }
}

/** Does all of them in turn, also where one fails; rejects with one of the failures then. */
const eachOf = async <T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> => {
  const failures: unknown[] = [];
  for (const item of items)
    await work(item).catch((error: unknown) => {
      failures.push(error);
    });
  if (failures.length > 0) throw failures.find((each) => !isOvertaken(each)) ?? failures[0];
};

const isOvertaken = (error: unknown): boolean =>
  error instanceof RecordConflict || error instanceof RecordExists;

const isLater = (one: Pick<TemplateRecord, 'version'>, other: { version: string }): boolean =>
  Number(one.version) > Number(other.version);

/** One that the manager may write: its copy, or what was that until the cluster left it. */
const isOf = (known: TemplateRecord, manager: string, globalId: string): boolean =>
  known.managedBy === manager || (known.managedBy === '' && known.globalId === globalId);

const isSame = (known: TemplateRecord, wanted: Omit<TemplateRecord, 'revision'>): boolean =>
  known.globalId === wanted.globalId &&
  known.managedBy === wanted.managedBy &&
  known.version === wanted.version &&
  known.createdAt === wanted.createdAt &&
  isSameData(known.document, wanted.document);
