import { isDnsLabel } from '../../model/identifiers.ts';
import { clusterNotFound, invalidArgument } from '../../model/refusals.ts';

/** Says what a name in a path or a body stands for. */
export type NameKind = 'sandbox' | 'pool';

/** A kind, or what tells it by the other parameters of a path. */
export type NameKindOf = NameKind | ((params: Readonly<Record<string, string>>) => NameKind);

export const nameKindOf = (
  kind: NameKindOf = 'sandbox',
  params: Readonly<Record<string, string>>,
): NameKind => (typeof kind === 'function' ? kind(params) : kind);

/**
 * The local part of a name that may carry a cluster's: `{clusterID}.{uuid}` of a sandbox,
 * `{clusterID}::{poolName}` of a pool. Refuses another cluster's with CLUSTER_NOT_FOUND, and a
 * pool's name with an image after `//`, which belongs to another API. What is left is for its own
 * schema to check.
 */
export const localName = (
  kind: NameKind,
  text: string,
  { clusterId, field }: { readonly clusterId: string; readonly field: string },
): string => {
  if (kind === 'pool' && text.includes('//'))
    throw invalidArgument(field, 'must not hold //; an image is not chosen here');
  const separator = kind === 'sandbox' ? '.' : '::';
  const at = text.indexOf(separator);
  const cluster = text.slice(0, Math.max(0, at));
  if (!isDnsLabel(cluster)) return text; // names no cluster
  if (cluster !== clusterId) throw clusterNotFound();
  return text.slice(at + separator.length);
};
