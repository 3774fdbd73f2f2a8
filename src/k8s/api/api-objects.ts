import type { Version } from '../../model/mirror/mirror-terms.ts';
import { ApiUnreachable } from './api-errors.ts';

export interface ObjectIdentity {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface ListPage {
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  readonly next: string | undefined;
}

/** Throws ApiUnreachable for anything but a list, which came from a proxy. */
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

export const keyOf = ({
  namespace,
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string => (namespace === undefined ? name : `${namespace}/${name}`);

export const versionOf = <T>(
  object: unknown,
  trim: (object: unknown) => T | undefined,
): Version<T> => {
  const { key, uid, resourceVersion } = identityOf(object);
  return { key, uid, revision: resourceVersion, record: trim(object) };
};

export const resourceVersionOf = (object: unknown): string => {
  const { resourceVersion } = metadataOf(object);
  if (typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new ApiUnreachable('an object without resourceVersion');
  return resourceVersion;
};

export const listPageOf = (list: unknown): ListPage => {
  const resourceVersion = resourceVersionOf(list);
  const { continue: next } = metadataOf(list);
  // Null for an empty collection that is requested as metadata only.
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
