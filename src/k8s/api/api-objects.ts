import type { Version } from '../../model/mirror/mirror-terms.ts';
import { ApiUnreachable } from './api-errors.ts';

/** The identity that every object of the API server states. */
export interface ObjectIdentity {
  /** `namespace/name`, or the name alone. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface ListPage {
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

/** Throws ApiUnreachable where it is none: who answered was not the API server. */
export const identityOf = (object: unknown): ObjectIdentity => {
  const { namespace, name, uid, resourceVersion } = metadataOf(object);
  if (typeof name !== 'string' || typeof uid !== 'string' || typeof resourceVersion !== 'string')
    throw new ApiUnreachable('an object without name, uid or resourceVersion');
  return {
    key: keyOf({ namespace: typeof namespace === 'string' ? namespace : undefined, name }),
    uid,
    resourceVersion,
  };
};

/** The name by which mirrors know an object. */
export const keyOf = ({
  namespace,
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string => (namespace === undefined ? name : `${namespace}/${name}`);

/** An object as mirrors take it. Throws what `trim` throws. */
export const versionOf = <T>(
  object: unknown,
  trim: (object: unknown) => T | undefined,
): Version<T> => {
  const { key, uid, resourceVersion } = identityOf(object);
  return { key, uid, revision: resourceVersion, record: trim(object) };
};

/** The revision that a bookmark, an object or a list carries. */
export const resourceVersionOf = (object: unknown): string => {
  const { resourceVersion } = metadataOf(object);
  if (typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new ApiUnreachable('an object without resourceVersion');
  return resourceVersion;
};

export const listPageOf = (list: unknown): ListPage => {
  const resourceVersion = resourceVersionOf(list);
  const { continue: next } = metadataOf(list);
  // Of an empty collection, asked for its objects' metadata alone, the API server says null.
  const items: unknown =
    typeof list === 'object' && list !== null && 'items' in list ? (list.items ?? []) : undefined;
  if (!Array.isArray(items)) throw new ApiUnreachable('a list without items');
  return {
    items,
    resourceVersion,
    next: typeof next === 'string' && next !== '' ? next : undefined,
  };
};

interface Metadata {
  readonly namespace?: unknown;
  readonly name?: unknown;
  readonly uid?: unknown;
  readonly resourceVersion?: unknown;
  readonly continue?: unknown;
}

const metadataOf = (object: unknown): Metadata => {
  const metadata: unknown =
    typeof object === 'object' && object !== null && 'metadata' in object
      ? object.metadata
      : undefined;
  return typeof metadata === 'object' && metadata !== null ? metadata : {};
};
