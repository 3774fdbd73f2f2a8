import { isSameData } from '../../lib/plain-data.ts';
import type { Clock } from '../../contracts/clock.ts';
import { RecordExists, type Records } from '../../contracts/record-store.ts';
import {
  DefinitionRefused,
  RecordConflict,
  type SandboxDriver,
} from '../../contracts/sandbox-driver.ts';
import { requireMatch } from '../../model/if-match.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import {
  featureDisabled,
  invalidArgument,
  noSuchTemplate,
  templateAlreadyExists,
  templateInUse,
  unavailable,
  type Refusal,
} from '../../model/refusals.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import {
  isCopy,
  isGlobalHere,
  ownTemplate,
  templateOfManager,
} from '../../model/templates/global-template.ts';
import type {
  SandboxTemplateDocument,
  TemplateRecord,
  TemplateSpec,
} from '../../model/templates/template.ts';
import { nextVersion } from '../../model/templates/template-versions.ts';
import type { TemplateChange, TemplateOperations, TemplateTerms } from './template-operations.ts';
import { poolsMadeFrom } from './pools-made-from.ts';
import { templateView } from './templates.ts';

export interface ChangeTemplatesDeps {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Pick<Records<PoolRecord>, 'list'>;
  readonly driver: Pick<SandboxDriver, 'check' | 'expect'>;
  readonly clock: Clock;
  /** Absent if the daemon manages no clusters. */
  readonly globals?: Globals;
}

export interface Globals {
  readonly newId: () => string;
  /** Refuses with CONFLICT at the limit of global templates. */
  readonly requireRoom: (record: Pick<TemplateRecord, 'name' | 'document' | 'earlier'>) => void;
  readonly poolsOf: (
    globalId: string,
  ) => Promise<readonly { readonly name: string; readonly namespace: string }[]>;
  /** Resolves once the connected clusters have all earlier changes; within 5 s. */
  readonly settled: () => Promise<void>;
}

const ATTEMPTS = 5;
const MOST_POOLS_NAMED = 50;

/**
 * Version 1 (operation `POST /admin/sandbox-templates`). Durable when it resolves. A global
 * template is then also at the connected clusters.
 */
export const createTemplate =
  ({
    templates,
    driver,
    clock,
    globals,
  }: ChangeTemplatesDeps): TemplateOperations['createTemplate'] =>
  async (document, terms = {}) => {
    requireRunnable(driver, document);
    const draft = {
      name: document.metadata.name,
      version: '1',
      createdAt: clock.now(),
      document,
    };
    try {
      const record = await templates.create({ ...draft, ...globalTerms(globals, draft, terms) });
      if (isGlobalHere(record)) await globals?.settled();
      return templateView(record);
    } catch (error) {
      throw error instanceof RecordExists ? templateAlreadyExists() : error;
    }
  };

/**
 * Keeps absent fields; without effect, makes no version (operation `PUT
 * /admin/sandbox-templates/{name}`). Durable when it resolves; pools follow.
 */
export const updateTemplate =
  ({ templates, driver, globals }: ChangeTemplatesDeps): TemplateOperations['updateTemplate'] =>
  async (name, { ifMatch, ...change }) => {
    if (change.document && change.document.metadata.name !== name)
      throw invalidArgument('crdJson.metadata.name', `must be ${name}`);
    if (change.document) requireRunnable(driver, change.document);
    return await withCurrent(templates, name, async (record) => {
      requireMatch(ifMatch, record.revision);
      if (isCopy(record)) throw templateOfManager();
      const next = nextRecord(globals, record, change);
      if (next === record) return templateView(record);
      const written = await templates.update(next);
      if (isGlobalHere(record) || isGlobalHere(next)) await globals?.settled();
      return templateView(written);
    });
  };

/**
 * Only if no pool uses it, for a global template on any connected cluster (operation `DELETE
 * /admin/sandbox-templates/{name}`). A pool created concurrently keeps its copy.
 */
export const deleteTemplate =
  ({ templates, pools, globals }: ChangeTemplatesDeps): TemplateOperations['deleteTemplate'] =>
  async (name) => {
    await withCurrent(templates, name, async (record) => {
      if (isCopy(record)) throw templateOfManager();
      const own = await poolsMadeFrom(pools, name);
      const others = isGlobalHere(record) ? await globals?.poolsOf(record.globalId) : undefined;
      const users = [...own, ...(others ?? [])];
      if (users.length > 0) throw templateInUse(users.slice(0, MOST_POOLS_NAMED));
      await templates.remove(record);
      if (isGlobalHere(record)) await globals?.settled();
    });
  };

/** Starts again after a concurrent write. */
const withCurrent = async <T>(
  templates: Records<TemplateRecord>,
  name: string,
  write: (record: TemplateRecord) => Promise<T>,
): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    const record = await templates.get(name);
    if (!record) throw noSuchTemplate();
    try {
      return await write(record);
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      if (attempt === ATTEMPTS)
        throw unavailable('the template was changed by another request; try again');
    }
  }
};

const globalTerms = (
  globals: Globals | undefined,
  draft: Pick<TemplateRecord, 'name' | 'document'>,
  { syncSource }: TemplateTerms,
): Pick<TemplateRecord, 'globalId'> => {
  if (syncSource === undefined) return {};
  if (!globals) throw NO_CLUSTERS();
  globals.requireRoom(draft);
  return { globalId: globals.newId() };
};

const nextRecord = (
  globals: Globals | undefined,
  record: TemplateRecord,
  { syncSource, ...change }: Parameters<TemplateOperations['updateTemplate']>[1],
): TemplateRecord => {
  const document = changedDocument(record.document, change);
  const isChanged = !isSameData(document, record.document);
  // a change to a template of a former manager makes it the cluster's own
  const current: TemplateRecord = isChanged && !isGlobalHere(record) ? ownTemplate(record) : record;
  const next = isChanged ? nextVersion(current, document) : current;
  if (isGlobalHere(next)) {
    if (syncSource === '') return ownTemplate(next);
    if (isChanged) globals?.requireRoom(next);
    return next;
  }
  // a template file may already say so, on a daemon without clusters
  if (syncSource !== 'global' || (!globals && next.sourceHash !== undefined)) return next;
  return { ...ownTemplate(next), ...globalTerms(globals, next, { syncSource }) };
};

const NO_CLUSTERS = (): Refusal => featureDisabled('syncSource', 'other clusters that it manages');

const requireRunnable = (
  driver: ChangeTemplatesDeps['driver'],
  document: SandboxTemplateDocument,
): void => {
  const definition = renderDefinition(document.spec);
  try {
    driver.check(definition);
  } catch (error) {
    throw error instanceof DefinitionRefused ? refusedByDriver(error.message) : error;
  }
  driver.expect(definition);
};

/** A driver's message names the field, as in `spec.containers[0].image: PROBLEM`. */
const refusedByDriver = (message: string): Refusal => {
  const [, field, problem = message] = /^(spec[^ ]*): (.*)$/s.exec(message) ?? [];
  return invalidArgument(
    field === undefined ? 'crdJson' : `crdJson.${field}`,
    `this daemon can't run it: ${problem}`,
  );
};

/**
 * Keeps description, docs and poolSizing if the new document lacks them. An empty text removes a
 * field.
 */
const changedDocument = (
  before: SandboxTemplateDocument,
  { document = before, ...texts }: TemplateChange,
): SandboxTemplateDocument => {
  const { description, docs, poolSizing } = {
    ...textsOf(before.spec),
    ...textsOf(document.spec),
    ...texts,
  };
  const {
    description: _description,
    docs: _docs,
    poolSizing: _poolSizing,
    ...rest
  } = document.spec;
  return {
    ...document,
    spec: {
      ...rest,
      description: description || undefined,
      docs: docs || undefined,
      poolSizing,
    },
  };
};

const textsOf = ({
  description,
  docs,
  poolSizing,
}: TemplateSpec): Omit<TemplateChange, 'document'> => ({
  ...(description === undefined ? {} : { description }),
  ...(docs === undefined ? {} : { docs }),
  ...(poolSizing === undefined ? {} : { poolSizing }),
});
