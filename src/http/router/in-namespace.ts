import { z } from 'zod';
import type { Caller } from '../../model/tenant.ts';
import { refuseAdminFields } from './admin-fields.ts';
import type { Route, RouteRequest } from './route.ts';
import { maybe, MAX_REFERENCE, text } from '../resources/common-schema.ts';
import { ADMINS_ALONE } from '../resources/sandboxes/schema.ts';

const NAMESPACE = {
  namespace: maybe(text(MAX_REFERENCE)).describe(
    `The namespace of what the path names, as lists show it; without it, that of the key. ${ADMINS_ALONE}`,
  ),
};

type Request = RouteRequest<'tenant', unknown, { readonly namespace?: string }, unknown>;

/**
 * A row about one named pool or env, which an admin may name in any namespace: `?namespace=`. A
 * name that none has names nothing.
 */
export const inNamespace = (row: Route): Route => {
  if (!row.path.includes('{name}')) return row;
  const { earlier, handle } = row;
  return {
    ...row,
    query: queryWith(row),
    refusals: row.refusals.includes('ADMIN_REQUIRED')
      ? row.refusals
      : [...row.refusals, 'ADMIN_REQUIRED'],
    handle: (request) => handle(moved(request as Request)),
    ...(earlier
      ? { earlier: (request, mark, instance) => earlier(moved(request as Request), mark, instance) }
      : {}),
  };
};

const queryWith = ({ query, operationId }: Route): z.ZodType => {
  if (query === undefined) return z.object(NAMESPACE);
  if (query instanceof z.ZodObject) return query.extend(NAMESPACE);
  throw new Error(`the query of ${operationId} is no object`);
};

const moved = (request: Request): Request => {
  const {
    caller,
    query: { namespace, ...query },
  } = request;
  refuseAdminFields(caller, { namespace }, ['namespace']);
  return {
    ...request,
    query,
    caller: namespace === undefined ? caller : ({ ...caller, namespace } satisfies Caller),
  };
};
