import { askedBase } from '../../reply/bases.ts';
import { localName, nameKindOf } from '../local-names.ts';
import { readQuery } from '../query.ts';
import type { Deprecation, Route } from '../route.ts';
import { check } from '../validation.ts';
import type { RoutedContext, Stage } from './exchange.ts';

interface ResolveDeps {
  readonly terms: { readonly clusterId: string; readonly sunset: string | undefined };
}

/**
 * Reads the names in the path, without this cluster's name before them, and the query. Refuses
 * names of other clusters with CLUSTER_NOT_FOUND, unless a manager has located them.
 */
export const resolve =
  ({ terms }: ResolveDeps): Stage =>
  async (exchange, next) => {
    const { row, context } = exchange;
    exchange.params = exchange.isElsewhere
      ? context.params // for that cluster to check
      : row.params && paramsOf(row.params, context.params, terms.clusterId);
    exchange.query = row.query
      ? check(row.query, readQuery(context.querystring, row.queryMaps))
      : undefined;
    await next();
  };

/** Names the row for logs, metrics and traces, and announces its end (RFC 9745, RFC 8594). */
export const announce =
  ({ terms }: ResolveDeps): Stage =>
  async ({ row, context }, next) => {
    context.state.route = row.path;
    context.state.operation = row.operationId;
    if (row.deprecated) announceDeprecation(row.deprecated, context, terms.sunset);
    await next();
  };

const paramsOf = (
  params: NonNullable<Route['params']>,
  given: Record<string, string>,
  clusterId: string,
): unknown => {
  const local = { ...given };
  for (const name in params.names)
    local[name] = localName(nameKindOf(params.names[name], given), given[name] ?? '', {
      clusterId,
      field: name,
    });
  const result = params.schema.safeParse(local);
  if (!result.success) throw params.otherwise(local);
  return result.data;
};

const announceDeprecation = (
  { since, successor }: Deprecation,
  context: RoutedContext,
  sunset: string | undefined,
): void => {
  const link =
    askedBase(context.path) +
    successor.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(context.params[name] ?? ''),
    );
  context.set('Deprecation', `@${since}`);
  context.set('Link', `<${link}>; rel="successor-version"`);
  if (sunset !== undefined) context.set('Sunset', sunset);
};
