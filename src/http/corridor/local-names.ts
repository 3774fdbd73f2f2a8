import { isDnsLabel } from '../../model/identifiers.ts';
import { clusterNotFound, invalidArgument } from '../../model/refusals.ts';

/** `instance`: the actor of a sandbox or an approval. `actor`: any other. */
export type NameKind = 'sandbox' | 'pool' | 'instance' | 'actor';

export const actorNameKind = (kind: unknown): NameKind =>
  kind === 'sandbox' || kind === 'approval' ? 'instance' : 'actor';

export type NameKindOf = NameKind | ((params: Readonly<Record<string, string>>) => NameKind);

export const nameKindOf = (
  kind: NameKindOf = 'sandbox',
  params: Readonly<Record<string, string>>,
): NameKind => (typeof kind === 'function' ? kind(params) : kind);

export interface ReadName {
  readonly cluster?: string;
  readonly local: string;
}

/**
 * Parses `{clusterID}.{uuid}` or `{clusterID}::{name}`. Text without a separator is local.
 * Undefined if malformed.
 */
export const readName = (kind: NameKind, text: string): ReadName | undefined => {
  const separator = separatorOf(kind);
  const at = DOTS.test(text) ? -1 : text.indexOf(separator);
  if (at < 0) return kind === 'pool' && text.includes('//') ? undefined : { local: text };
  const [cluster, local] = [text.slice(0, at), text.slice(at + separator.length)];
  return isDnsLabel(cluster) && IS_LOCAL[kind](local) ? { cluster, local } : undefined;
};

/** Relative path segments never name a cluster. */
const DOTS = /^\.+$/;

export const separatorOf = (kind: NameKind): string =>
  kind === 'sandbox' || kind === 'instance' ? '.' : '::';

/** Any UUID version, so that an unknown id is not found rather than malformed. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const IS_LOCAL: Readonly<Record<NameKind, (local: string) => boolean>> = {
  sandbox: (local) => UUID.test(local),
  pool: isDnsLabel,
  instance: (local) => /^[\w-]+$/.test(local),
  actor: (local) => local.split('/').every(isDnsLabel),
};

const FORMS: Readonly<Record<NameKind, string>> = {
  sandbox: 'must be a UUID, or {clusterID}.{uuid}',
  pool: 'must be a name, or {clusterID}::{name}; an image cannot be named here',
  instance: 'must be an id, or {clusterID}.{id}',
  actor: 'must be a name, or {clusterID}:: and a name',
};

export const malformedName = (kind: NameKind, field: string) => invalidArgument(field, FORMS[kind]);

/**
 * Strips an optional cluster prefix. Refuses another cluster's name with CLUSTER_NOT_FOUND, and a
 * malformed one with INVALID_ARGUMENT.
 */
export const localName = (
  kind: NameKind,
  text: string,
  { clusterId, field }: { readonly clusterId: string; readonly field: string },
): string => {
  const name = readName(kind, text);
  if (!name) throw malformedName(kind, field);
  if (name.cluster !== undefined && name.cluster !== clusterId) throw clusterNotFound();
  return name.local;
};
