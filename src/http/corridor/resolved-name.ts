import type { Caller } from '../../model/tenant.ts';
import type { AnyRequest, Route } from './route.ts';

/** Names what a request comes to, in the one form that it has however it is spelled. */
export interface ResolvedName {
  readonly operation: string;
  /** Without base, full names and clusters; percent-encoded where it must be. */
  readonly path: string;
  readonly namespace: string;
  /** The name, or the keyId, of what the path names. */
  readonly name: string | undefined;
  /** The pool that the path names within that. */
  readonly member: string | undefined;
  /** The id of the sandbox or approval that the path names. */
  readonly id: string | undefined;
}

/**
 * Resolves a request's operation, and what its path names. A full name `{namespace}/{name}`, in one
 * segment or two, and `?namespace=` come to the same as the short name there.
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
