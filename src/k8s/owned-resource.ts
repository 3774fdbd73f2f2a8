import type { Tenant } from '../model/tenant.ts';
import { isBornAsItself, type Born } from './born-as.ts';
import { mendedOf, type Fault, type Resource, type ResourceObject, type Written } from './resource.ts';
import { FORMAT } from './sandbox-resource.ts';

/** Of a user, with a name in the user's namespace. */
interface Owned { readonly uid: string; readonly name: string; readonly owner: Tenant }

/** A kind whose objects may be made by hand: a daemon adds `resolved`, and what has none, or another's, is settled first. */
export interface OwnedKind<T extends Owned, R extends Born & { readonly format: number }> {
  readonly kind: string;
  readonly plural: string;
  /** Holds the uid. */
  readonly label: string;
  readonly now: () => number;
  readonly written: (record: Omit<T, 'revision'>, bornAt: string) => Written;
  readonly recordOf: (object: ResourceObject, resolved: R) => T;
  readonly settled: (object: ResourceObject) => Written | Fault;
}

/** How its records stand in objects; a record's key is `namespace/name`. */
export const ownedResource = <T extends Owned, R extends Born & { readonly format: number }>(of: OwnedKind<T, R>): Resource<T> => {
  const resolvedOf = (object: ResourceObject | undefined): R | undefined => object?.resolved as R | undefined; // by the schema of the kind
  return {
    kind: of.kind,
    plural: of.plural,
    place: ({ owner: { namespace }, name }) => ({ namespace, name }),
    find: (key) => ({ namespace: key.slice(0, key.indexOf('/')), name: key.slice(key.indexOf('/') + 1) }),
    unique: ({ uid }) => `${of.label}=${uid}`,
    write: (record, before) => of.written(record, resolvedOf(before)?.bornAt ?? new Date(of.now()).toISOString()),
    read: (object) => {
      const resolved = resolvedOf(object);
      if (resolved && resolved.format > FORMAT) return { kind: 'too-new', format: resolved.format };
      if (!resolved || !isBornAsItself(object, resolved)) return { kind: 'unsettled', object };
      return { kind: 'record', record: of.recordOf(object, resolved), ...mendedOf(object) };
    },
    settle: of.settled,
  };
};
