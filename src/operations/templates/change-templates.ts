import { isDeepStrictEqual } from 'node:util';
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
  invalidArgument,
  noSuchTemplate,
  templateAlreadyExists,
  templateInUse,
  unavailable,
  type Refusal,
} from '../../model/refusals.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import type {
  SandboxTemplateDocument,
  TemplateRecord,
  TemplateSpec,
} from '../../model/templates/template.ts';
import { nextVersion } from '../../model/templates/template-versions.ts';
import type { Operations } from '../operations.ts';
import type { TemplateChange } from './template-operations.ts';
import { templateView } from './templates.ts';

export interface ChangeTemplatesDeps {
  readonly templates: Records<TemplateRecord>;
  readonly pools: Pick<Records<PoolRecord>, 'list'>;
  readonly driver: Pick<SandboxDriver, 'check' | 'expect'>;
  readonly clock: Clock;
}

const ATTEMPTS = 5;
const MOST_POOLS_NAMED = 50;

/**
 * Makes a template, with version 1 (operation `POST /admin/sandbox-templates`). Durable when it
 * resolves.
 */
export const createTemplate =
  ({ templates, driver, clock }: ChangeTemplatesDeps): Operations['createTemplate'] =>
  async (document) => {
    requireRunnable(driver, document);
    try {
      return templateView(
        await templates.create({
          name: document.metadata.name,
          version: '1',
          createdAt: clock.now(),
          document,
        }),
      );
    } catch (error) {
      throw error instanceof RecordExists ? templateAlreadyExists() : error;
    }
  };

/**
 * Changes what is named; a change that says what is there already makes no version (operation
 * `PUT /admin/sandbox-templates/{name}`). Durable when it resolves; pools follow.
 */
export const updateTemplate =
  ({ templates, driver }: ChangeTemplatesDeps): Operations['updateTemplate'] =>
  async (name, { ifMatch, ...change }) => {
    if (change.document && change.document.metadata.name !== name)
      throw invalidArgument('crdJson.metadata.name', `must be ${name}`);
    if (change.document) requireRunnable(driver, change.document);
    return await withCurrent(templates, name, async (record) => {
      requireMatch(ifMatch, record.revision);
      const document = changedDocument(record.document, change);
      return templateView(
        isDeepStrictEqual(document, record.document)
          ? record
          : await templates.update(nextVersion(record, document)),
      );
    });
  };

/**
 * Removes a template that no pool is made from (operation `DELETE
 * /admin/sandbox-templates/{name}`). A pool that is made at the same moment keeps what it was made
 * from.
 */
export const deleteTemplate =
  ({ templates, pools }: ChangeTemplatesDeps): Operations['deleteTemplate'] =>
  async (name) => {
    await withCurrent(templates, name, async (record) => {
      const users = (await pools.list()).filter(
        ({ source, deleting }) => source.templateName === name && deleting === false,
      );
      if (users.length > 0)
        throw templateInUse(
          users
            .slice(0, MOST_POOLS_NAMED)
            .map((pool) => ({ name: pool.name, namespace: pool.owner.namespace })),
        );
      await templates.remove(record);
    });
  };

/** Reads it, and writes it on; anew where somebody else wrote in between. */
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
      if (attempt === ATTEMPTS) throw unavailable('the template changed meanwhile; try again');
    }
  }
};

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

/** A driver names the field, as `spec.containers[0].image: PROBLEM`. */
const refusedByDriver = (message: string): Refusal => {
  const [, field, problem = message] = /^(spec[^ ]*): (.*)$/s.exec(message) ?? [];
  return invalidArgument(
    field === undefined ? 'crdJson' : `crdJson.${field}`,
    `this daemon can't run it: ${problem}`,
  );
};

/**
 * A new document keeps description, docs and poolSizing of the one before where it has none; an
 * empty text removes one.
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
      ...(description === undefined || description === '' ? {} : { description }),
      ...(docs === undefined || docs === '' ? {} : { docs }),
      ...(poolSizing === undefined ? {} : { poolSizing }),
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
