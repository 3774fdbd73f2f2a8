import type { Caller } from '../../model/tenant.ts';
import type { AnyRequest, Route } from './route.ts';

/** Operation and resource of a request, independent of its spelling. */
export interface ResolvedName {
  readonly operation: string;
  /** Percent-encoded, without base, namespaces and cluster prefixes. */
  readonly path: string;
  readonly namespace: string;
  readonly name: string | undefined;
  readonly member: string | undefined;
  readonly id: string | undefined;
}

/**
 * Full names in one or two segments, and `?namespace=`, resolve like the short name in that
 * namespace.
 */
export const resolvedName = (row: Route, request: AnyRequest, caller: Caller): ResolvedName => {
  const to = row.rules?.becomes?.(request.body) ?? row.rules?.as ?? row;
  const given = (request.params ?? {}) as Readonly<Record<string, string>>;
  const { namespace: asked } = (request.query ?? {}) as { readonly namespace?: string };
  const [name, named] = (given['shortName'] ?? given['name'])?.split('/').toReversed() ?? [];
  const namespace = asked ?? given['namespace'] ?? named ?? caller.namespace;
  const params = name === undefined ? given : { ...given, name };
  return {
    operation: to.operationId,
    path: to.path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
      encodeURIComponent(params[parameter as keyof typeof params] ?? ''),
    ),
    namespace,
    name: name ?? given['keyId'],
    member: given['pool'],
    id: given['sandboxId'] ?? given['approvalId'],
  };
};
