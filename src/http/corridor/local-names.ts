import { isDnsLabel } from '../../model/identifiers.ts';
import { clusterNotFound, invalidArgument } from '../../model/refusals.ts';

/**
 * Says what a name in a path or a body stands for. An `instance` is the actor of a sandbox or an
 * approval, an `actor` any other one, whose name may have a namespace or an env before it.
 */
export type NameKind = 'sandbox' | 'pool' | 'instance' | 'actor';

/** Which kind of name an actor of this kind has. */
export const actorNameKind = (kind: unknown): NameKind =>
  kind === 'sandbox' || kind === 'approval' ? 'instance' : 'actor';

/** A kind, or what tells it by the other parameters of a path. */
export type NameKindOf = NameKind | ((params: Readonly<Record<string, string>>) => NameKind);

export const nameKindOf = (
  kind: NameKindOf = 'sandbox',
  params: Readonly<Record<string, string>>,
): NameKind => (typeof kind === 'function' ? kind(params) : kind);

/** A name, and the cluster before it where it names one. */
export interface ReadName {
  readonly cluster?: string;
  readonly local: string;
}

/**
 * Reads `{clusterID}.{uuid}` of a sandbox, `{clusterID}::{name}` of a pool. A text without the
 * separator is a local name, whatever it is, and so are dots alone; undefined: the text has the
 * separator and is no such name.
 */
export const readName = (kind: NameKind, text: string): ReadName | undefined => {
  const separator = separatorOf(kind);
  const at = DOTS.test(text) ? -1 : text.indexOf(separator);
  if (at < 0) return kind === 'pool' && text.includes('//') ? undefined : { local: text };
  const [cluster, local] = [text.slice(0, at), text.slice(at + separator.length)];
  return isDnsLabel(cluster) && IS_LOCAL[kind](local) ? { cluster, local } : undefined;
};

/** A step in a path, which no cluster is named by. */
const DOTS = /^\.+$/;

export const separatorOf = (kind: NameKind): string =>
  kind === 'sandbox' || kind === 'instance' ? '.' : '::';

/** Takes any version, so that one that was never given out is not found, as without a cluster. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const IS_LOCAL: Readonly<Record<NameKind, (local: string) => boolean>> = {
  sandbox: (local) => UUID.test(local),
  pool: isDnsLabel,
  instance: (local) => /^[\w-]+$/.test(local),
  actor: (local) => local.split('/').every(isDnsLabel),
};

const FORMS: Readonly<Record<NameKind, string>> = {
  sandbox: 'must be a UUID, or {clusterID}.{uuid}',
  pool: 'must be a name, or {clusterID}::{name}; an image is not chosen here',
  instance: 'must be an id, or {clusterID}.{id}',
  actor: 'must be a name, or {clusterID}:: and a name',
};

/** The refusal of a text that `readName` can't read. */
export const malformedName = (kind: NameKind, field: string) => invalidArgument(field, FORMS[kind]);

/**
 * Returns the local part of a name that may carry a cluster's. Refuses another cluster's with
 * CLUSTER_NOT_FOUND, and with INVALID_ARGUMENT what is malformed, such as a pool's name with an
 * image after `//`, which belongs to another API. A name without a cluster is for its own schema to
 * check.
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
