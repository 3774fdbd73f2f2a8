import type { Version } from '../../model/mirror/mirror-terms.ts';
import { ApiUnreachable } from './api-errors.ts';

/** The identity of every object. */
export interface ObjectIdentity {
  /** `namespace/name`, or the name of an object without a namespace. */
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

/** Parses a list. Throws ApiUnreachable for anything else, which came from a proxy. */
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

/** The key of an object in mirrors. */
export const keyOf = ({
  namespace,
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string => (namespace === undefined ? name : `${namespace}/${name}`);

/** An object in the form of mirrors. Throws the errors of `trim`. */
export const versionOf = <T>(
  object: unknown,
  trim: (object: unknown) => T | undefined,
): Version<T> => {
  const { key, uid, resourceVersion } = identityOf(object);
  return { key, uid, revision: resourceVersion, record: trim(object) };
};

/** The resourceVersion of a bookmark, an object or a list. */
export const resourceVersionOf = (object: unknown): string => {
  const { resourceVersion } = metadataOf(object);
  if (typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new ApiUnreachable('an object without resourceVersion');
  return resourceVersion;
};

export const listPageOf = (list: unknown): ListPage => {
  const resourceVersion = resourceVersionOf(list);
  const { continue: next } = metadataOf(list);
  // For an empty collection requested as metadata only, the API server sends null.
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
