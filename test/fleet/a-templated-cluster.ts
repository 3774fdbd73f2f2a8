import type { Clock } from '../../src/contracts/clock.ts';
import type { Records } from '../../src/contracts/record-store.ts';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import { newNonce } from '../../src/fleet/link/fleet-keys.ts';
import type { ManagerLinks } from '../../src/fleet/link/manager-links.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import {
  SandboxTemplateSchema,
  type InstanceDefinition,
  type SandboxTemplateDocument,
  type TemplateRecord,
} from '../../src/model/templates/template.ts';
import { GlobalTemplates } from '../../src/fleet/replication/global-templates.ts';
import { TemplateCopies } from '../../src/fleet/replication/template-copies.ts';
import {
  createTemplate,
  deleteTemplate,
  updateTemplate,
} from '../../src/services/templates/change-templates.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { aStoredPool } from '../support/builders/a-pool.ts';
import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

export const aDocument = (name: string, description = '1', image = 'host') =>
  SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { description, containers: [{ name: 'main', image }] },
  }) satisfies SandboxTemplateDocument;

const driver = {
  check: ({ containers }: InstanceDefinition): void => {
    if (containers.some(({ image }) => image === 'elsewhere'))
      throw new DefinitionRefused('spec.containers[0].image: there is none here');
  },
  expect: () => undefined,
};

/** The templates of one cluster: a store that outlives its daemon, which may be started again. */
export class ClusterTemplates {
  store = new MemoryTemplates();
  pools: PoolRecord[] = [];
  readonly #clock: Clock;
  catalog!: TemplateCatalog;
  globals!: GlobalTemplates;
  copies!: TemplateCopies;

  private constructor(clock: Clock) {
    this.#clock = clock;
  }

  static async start(clock: Clock, managers = 1): Promise<ClusterTemplates> {
    const cluster = new ClusterTemplates(clock);
    await cluster.restart(managers);
    return cluster;
  }

  /** What the daemon knew is gone, and what it stored is not. `managers`: of its configuration. */
  async restart(managers = 1): Promise<void> {
    this.copies?.stop();
    const templates = new MemoryTemplates(this.store);
    this.store = templates;
    const clock = this.#clock;
    const catalog = new TemplateCatalog({ templates, clock });
    await catalog.start();
    this.catalog = catalog;
    this.globals = new GlobalTemplates({ catalog, log: quietLog });
    this.globals.start();
    const pools = { list: async () => this.pools };
    this.copies = new TemplateCopies({
      ...{ templates, catalog, pools, driver, clock, log: quietLog, managers },
    });
    await this.copies.start();
  }

  /** The store of the daemon that runs now. */
  readonly #current: Records<TemplateRecord> = {
    list: () => this.store.list(),
    get: (name) => this.store.get(name),
    create: (record) => this.store.create(record),
    update: (record) => this.store.update(record),
    remove: (record) => this.store.remove(record),
    watch: (report) => this.store.watch(report),
    caughtUp: () => this.store.caughtUp(),
  };

  /** The operations on templates; of a manager with these links. */
  operations(links?: () => ManagerLinks) {
    const deps = {
      templates: this.#current,
      pools: { list: async () => this.pools },
      driver,
      clock: this.#clock,
      globals:
        links === undefined
          ? undefined
          : {
              newId: newNonce,
              requireRoom: this.globals.requireRoom.bind(this.globals),
              settled: () => links().templatesSettled(),
              poolsOf: async (globalId: string) =>
                (await links().report('west', globalId))?.pools ?? [],
            },
    };
    return {
      create: createTemplate(deps),
      update: updateTemplate(deps),
      delete: deleteTemplate(deps),
    };
  }

  /** A pool that is made from a template; without a name, no more pools are. */
  usedBy(templateName?: string): void {
    this.pools =
      templateName === undefined ? [] : [aStoredPool({ name: 'user', source: { templateName } })];
  }

  get(name: string): TemplateRecord | undefined {
    return this.store.records.get(name);
  }

  /** `name version description` of each, and the earlier versions. */
  shown(): readonly string[] {
    return [...this.store.records.values()]
      .map(
        ({ name, version, document, earlier = [] }) =>
          `${name} ${version} ${document.spec.description} ${earlier.map((each) => each.version).join()}`,
      )
      .sort();
  }
}
