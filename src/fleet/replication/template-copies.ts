import { isSameData } from '../../lib/plain-data.ts';
import type { Clock } from '../../contracts/clock.ts';
import {
  type CopyReport,
  type GlobalTemplateChange,
  type GlobalTemplateCopies,
  MOST_GLOBAL_TEMPLATES,
  type ToldTemplate,
} from '../../contracts/fleet/global-templates.ts';
import type { ToldVisit } from '../../contracts/fleet/told-records.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordExists, type Records } from '../../contracts/record-store.ts';
import {
  DefinitionRefused,
  RecordConflict,
  type SandboxDriver,
} from '../../contracts/sandbox-driver.ts';
import { LinkReports } from '../../model/fleet/link-reports.ts';
import { isCopy } from '../../model/templates/global-template.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import {
  type InstanceDefinition,
  SandboxTemplateSchema,
  type TemplateRecord,
  type TemplateVersion,
} from '../../model/templates/template.ts';
import { poolsMadeFrom } from '../../services/templates/pools-made-from.ts';
import type { TemplateCatalog } from '../../actors/pool/template-catalog.ts';
import {
  type CopyProblem,
  type RecordOrigin,
  ReplicatedRecords,
  type WantedRecord,
} from './replicated-records.ts';
import type { Tried } from './store-retries.ts';
import { fieldPath } from '../../lib/field-path.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import { keptOf } from '../../model/templates/template-versions.ts';

export interface TemplateCopiesDeps {
  readonly templates: Records<TemplateRecord>;
  readonly catalog: TemplateCatalog;
  readonly pools: Pick<Records<PoolRecord>, 'list'>;
  readonly driver: Pick<SandboxDriver, 'check' | 'expect'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly managers: number;
}

const MOST_POOLS_NAMED = 50;

class CopyInUse extends Error {}

/**
 * Copies of managers' global templates; never changes the cluster's own. A copy is deleted once its
 * manager no longer has it and no pool uses it. A cluster that leaves its manager keeps the copies
 * as its own.
 */
export class TemplateCopies
  extends ReplicatedRecords<ToldTemplate, TemplateRecord>
  implements GlobalTemplateCopies
{
  readonly #deps: TemplateCopiesDeps;

  constructor(deps: TemplateCopiesDeps) {
    super({ ...deps, reports: new LinkReports(), most: 2 * MOST_GLOBAL_TEMPLATES });
    this.#deps = deps;
  }

  /** Call after the templates are loaded. */
  override async start(): Promise<void> {
    this.#deps.catalog.follow(({ record: { name } }) =>
      this.settleAgain(({ told, problem }) => told.name === name && problem?.state !== 'Refused'),
    );
    await super.start();
  }

  begin(manager: string): ToldVisit<GlobalTemplateChange> {
    const visit = this.visit(manager);
    return {
      ...visit,
      take: ({ templates, gone, whole }) =>
        visit.take({ records: templates, gone, isWhole: whole !== undefined }),
    };
  }

  async report(manager: string, globalId: string): Promise<CopyReport> {
    const origin = { manager, id: globalId };
    const wanted = this.wanted(origin);
    const record = [...this.#deps.catalog.values()].find(
      (each) => each.managedBy === manager && each.globalId === globalId,
    );
    const pools = record ? await this.#poolsOf(record.name) : [];
    const { version } = record ?? {};
    const shown = { version, pools };
    if (wanted?.problem) return { ...shown, ...wanted.problem };
    if (wanted && this.isPending(origin))
      return { ...shown, state: 'Pending', message: 'its store has not accepted the template yet' };
    if (!record) return { state: wanted ? 'Pending' : 'Absent', pools };
    if (wanted) return { ...shown, state: 'Synced' };
    return { ...shown, state: 'Pending', message: 'it is deleted when no pool uses it' };
  }

  protected override idOf({ globalId }: ToldTemplate): string {
    return globalId;
  }

  protected override effectOn(known: ToldTemplate, told: ToldTemplate) {
    if (known.globalId === told.globalId) return isLater(known, told) ? 'late' : 'none';
    return known.name === told.name ? 'replaces' : 'none';
  }

  protected override copies(): Iterable<TemplateRecord> {
    return [...this.#deps.catalog.values()].filter(isCopy);
  }

  protected override originOf({ managedBy = '', globalId = '' }: TemplateRecord): RecordOrigin {
    return { manager: managedBy, id: globalId };
  }

  protected override async remove(copy: TemplateRecord): Promise<void> {
    if ((await this.#poolsOf(copy.name)).length > 0) throw new CopyInUse();
    await this.#deps.templates.remove(copy);
  }

  protected override async release(copy: TemplateRecord): Promise<void> {
    await this.#deps.templates.update({ ...copy, managedBy: '' });
  }

  protected override failed(_origin: RecordOrigin, error: unknown): void {
    if (error instanceof CopyInUse || isOvertaken(error)) return;
    this.#deps.log.warn({ error }, 'global-templates-not-written');
  }

  protected override async keep(wanted: WantedRecord<ToldTemplate>): Promise<Tried | CopyProblem> {
    const kept = await this.#write(wanted);
    if (typeof kept === 'string' || kept.message === wanted.problem?.message) return kept;
    const { name, version } = wanted.told;
    this.#deps.log.warn(
      { template: name, version, why: kept.message },
      'global-template-not-stored',
    );
    return kept;
  }

  async #write({
    manager,
    told,
    isWhole,
  }: WantedRecord<ToldTemplate>): Promise<Tried | CopyProblem> {
    const { templates, driver, log } = this.#deps;
    const known = await templates.get(told.name);
    if (known && !isOf(known, manager, told.globalId))
      return { state: 'Conflict', message: `another template named ${told.name} exists` };
    if (known?.globalId === told.globalId && !isWhole && isLater(known, told)) return 'moot';
    const read = readToldTemplate(told, (definition) => driver.check(definition));
    if ('fault' in read) return { state: 'Refused', message: read.fault };
    const copy = { ...read.template, managedBy: manager };
    if (known && isSame(known, copy)) return 'moot';
    if (known) await templates.update({ ...copy, revision: known.revision });
    else await templates.create(copy);
    driver.expect(read.definition);
    log.info({ template: copy.name, version: copy.version }, 'global-template-stored');
    return 'taken';
  }

  async #poolsOf(name: string): Promise<CopyReport['pools']> {
    return (await poolsMadeFrom(this.#deps.pools, name)).slice(0, MOST_POOLS_NAMED);
  }
}

/** Another replica, or a person, wrote the template first; a retry follows. */
const isOvertaken = (error: unknown): boolean =>
  error instanceof RecordConflict || error instanceof RecordExists;

const isLater = (one: Pick<TemplateRecord, 'version'>, other: { version: string }): boolean =>
  Number(one.version) > Number(other.version);

/** True also for a former copy that the cluster kept. */
const isOf = (known: TemplateRecord, manager: string, globalId: string): boolean =>
  known.managedBy === manager || (known.managedBy === '' && known.globalId === globalId);

const isSame = (known: TemplateRecord, wanted: Omit<TemplateRecord, 'revision'>): boolean =>
  known.globalId === wanted.globalId &&
  known.managedBy === wanted.managedBy &&
  known.version === wanted.version &&
  known.createdAt === wanted.createdAt &&
  isSameData(known.document, wanted.document);

const LONGEST_FAULT = 1_024;

type ReadTemplate =
  | {
      readonly template: Omit<TemplateRecord, 'revision'>;
      readonly definition: InstanceDefinition;
    }
  | { readonly fault: string };

/**
 * Returns why this cluster cannot run or read the template. `check` throws DefinitionRefused. Drops
 * unreadable earlier versions.
 */
const readToldTemplate = (
  { globalId, name, version, createdAt, document, earlier = [] }: ToldTemplate,
  check: (definition: InstanceDefinition) => void,
): ReadTemplate => {
  const parsed = SandboxTemplateSchema.safeParse(document);
  if (!parsed.success)
    return faultOf(
      parsed.error.issues.map(({ path, message }) => `${fieldPath(path)}: ${message}`).join('; '),
    );
  if (parsed.data.metadata.name !== name)
    return faultOf('metadata.name: belongs to another template');
  const definition = renderDefinition(parsed.data.spec);
  try {
    check(definition);
  } catch (error) {
    if (error instanceof DefinitionRefused) return faultOf(error.message);
    throw error;
  }
  const kept = keptOf(earlier.filter(isUnderstood));
  return {
    template: {
      ...{ name, version, createdAt, document: parsed.data, globalId },
      ...(kept.length > 0 ? { earlier: kept } : {}),
    },
    definition,
  };
};

const faultOf = (fault: string): ReadTemplate => ({ fault: fault.slice(0, LONGEST_FAULT) });

const isUnderstood = ({ spec }: TemplateVersion): boolean => {
  try {
    return SandboxTemplateSchema.shape.spec.safeParse(JSON.parse(spec)).success;
  } catch {
    return false;
  }
};
