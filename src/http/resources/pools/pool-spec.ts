import { sourceOf } from '../../../model/pools/pool-source.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { PoolChange, PoolSpec } from '../../../actors/pool/commands/pool-operations.ts';
import type { PoolChangeBody, PoolSpecBody } from './schema.ts';

/**
 * Reads what a body asks of a pool. The registries' passwords go a way of their own; whether there
 * are any is not the client's to say.
 */
export const poolSpecOf = (body: PoolSpecBody): PoolSpec => {
  const {
    access,
    replicas,
    minReplicas,
    maxReplicas,
    updateStrategy,
    labels,
    annotations,
    overrides,
    ...rest
  } = body;
  if (rest.templateName !== undefined && rest.template !== undefined)
    throw invalidArgument('template', 'can not stand beside templateName');
  const { imagePullSecret, imagePullSecretConfigured: _, ...others } = overrides ?? {};
  const source = sourceOf({ ...rest, ...(overrides ? { overrides: others } : {}) });
  return {
    ...(isEmpty(source) ? {} : { source }),
    ...(imagePullSecret ? { registries: imagePullSecret.registries } : {}),
    ...(access === undefined ? {} : { access }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(minReplicas === undefined ? {} : { minReplicas }),
    ...(maxReplicas === undefined ? {} : { maxReplicas }),
    ...(updateStrategy === undefined ? {} : { updateStrategy }),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
};

const isEmpty = (object: object): boolean => Object.keys(object).length === 0;

/** Reads what a body changes of a pool. A null unsets its field. */
export const poolChangeOf = (body: PoolChangeBody): PoolChange => {
  const unset = nullsIn(body);
  const spec = poolSpecOf(withoutNulls(body) as PoolSpecBody);
  return { ...spec, ...(unset.length === 0 ? {} : { unset }) };
};

/** Returns the paths of the fields that are null, `overrides.image` of one within another. */
const nullsIn = (value: object, before = ''): readonly string[] =>
  Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
    if (part === null) return [`${before}${name}`];
    return isNested(before, name, part) ? nullsIn(part, `${name}.`) : [];
  });

const withoutNulls = (value: object, before = ''): object =>
  Object.fromEntries(
    Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
      if (part === null) return [];
      return [[name, isNested(before, name, part) ? withoutNulls(part, `${name}.`) : part]];
    }),
  );

/** Whether it is an object in which a field can be null by itself. */
const isNested = (before: string, name: string, part: unknown): part is object =>
  before === '' && (name === 'overrides' || name === 'updateStrategy') && part !== undefined;
