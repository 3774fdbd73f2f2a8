import { sourceOf } from '../../../model/pools/pool-source.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { PoolWishes } from '../../../operations/operations.ts';
import type { PoolWishesBody } from './schema.ts';

/**
 * What a body asks of a pool. The registries' passwords go a way of their own; whether there are
 * any is not the client's to say.
 */
export const poolWishesOf = (body: PoolWishesBody): PoolWishes => {
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
