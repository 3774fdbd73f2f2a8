import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { invalidArgument } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import { refuseAdminFields } from '../corridor/admin-fields.ts';
import type { Route, RouteRequest } from '../corridor/route.ts';
import { maybe, MAX_REFERENCE, text } from '../corridor/common-schema.ts';
import { FOR_ADMINS } from './sandboxes/schema.ts';

const NAMESPACE = {
  namespace: maybe(text(MAX_REFERENCE)).describe(
    'Namespace of the resource in the path, as lists show it. Default: the namespace of the ' +
      `key. ${FOR_ADMINS}`,
  ),
};

type Request = RouteRequest<
  'tenant',
  unknown,
  { readonly namespace?: string },
  { readonly name?: string } | undefined
>;

/**
 * Lets an admin address any namespace, by `?namespace=` or the full name `{namespace}/{name}`. A
 * malformed name gets the refusal of a missing resource.
 */
export const inNamespace = (row: Route): Route => {
  if (row.access !== 'tenant' || !/\{(?:name|keyId)\}/.test(row.path)) return row;
  const { effect, handle } = row;
  return {
    ...row,
    query: queryWith(row),
    ...(row.params ? { params: paramsWith(row.params) } : {}),
    refusals: row.refusals.includes('ADMIN_REQUIRED')
      ? row.refusals
      : [...row.refusals, 'ADMIN_REQUIRED'],
    handle: (request) => handle(moved(row, request as Request)),
    ...(effect?.kind === 'recorded'
      ? {
          effect: {
            ...effect,
            find: (request, mark, instance) =>
              effect.find(moved(row, request as Request), mark, instance),
          },
        }
      : {}),
  };
};

const queryWith = ({ query, operationId }: Route): z.ZodType => {
  if (query === undefined) return z.object(NAMESPACE);
  if (query instanceof z.ZodObject) return query.extend(NAMESPACE);
  throw new Error(`the query of ${operationId} is not an object`);
};

const paramsWith = (params: NonNullable<Route['params']>): NonNullable<Route['params']> => {
  const { schema } = params;
  const name: unknown = schema instanceof z.ZodObject ? schema.shape['name'] : undefined;
  if (!(schema instanceof z.ZodObject && name instanceof z.ZodString)) return params;
  const fullName = z
    .string()
    .refine((value) => {
      const [own = '', namespace, ...more] = value.split('/').toReversed();
      return name.safeParse(own).success && isDnsLabel(namespace ?? own) && more.length === 0;
    })
    .describe(
      `${name.description} Admins may write \`{namespace}/{name}\` too, its \`/\` as \`%2F\`.`,
    );
  return { ...params, schema: schema.extend({ name: fullName }) };
};

/** For non-admins, a full name gets the refusal of a missing resource. */
const moved = (row: Route, request: Request): Request => {
  const {
    caller,
    params,
    query: { namespace: asked, ...query },
  } = request;
  const [name, named] = params?.name?.split('/').toReversed() ?? [];
  const namespace = asked ?? named;
  refuseAdminFields(caller, { namespace: asked }, ['namespace']);
  if (row.params && named !== undefined && caller.role !== 'admin')
    throw row.params.otherwise({ ...params });
  if (named !== undefined && named !== namespace)
    throw invalidArgument('namespace', `must be ${named}, as in ${named}/${name}`);
  return {
    ...request,
    query,
    ...(name === undefined ? {} : { params: { ...params, name } }),
    caller: namespace === undefined ? caller : ({ ...caller, namespace } satisfies Caller),
  };
};
