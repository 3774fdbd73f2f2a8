import type { Grants } from '../../contracts/grants.ts';
import type { Tenant } from '../../model/tenant.ts';
import { matchesIdentity, type Born } from '../sandboxes/identity-annotations.ts';
import {
  laterFormat,
  mendedOf,
  type Fault,
  type Reading,
  type Resource,
  type ResourceObject,
  type StandingObject,
  type Written,
} from '../api/resource.ts';
import type { SealedContent, Seals } from '../api/seals.ts';

export interface ResourceTerms {
  readonly seals: Seals;
  readonly teamOf: (namespace: string) => string | undefined;
  readonly now: () => number;
}

interface Owned {
  readonly uid: string;
  readonly name: string;
  readonly owner: Tenant;
  readonly createdAt: number;
}

interface Resolved extends Born, SealedContent {
  readonly format: number;
}

/**
 * Objects may be made by hand. A daemon adds `resolved` under its seal. An object without it, or
 * with another object's, is settled first; one with a forged one is unusable.
 */
export interface OwnedKind<T extends Owned, R extends Resolved> extends ResourceTerms {
  readonly kind: string;
  readonly plural: string;
  readonly format: number;
  /** Field with the uid. */
  readonly label: string;
  readonly written: (
    record: Omit<T, 'revision'>,
    bornAt: string,
  ) => Written & { readonly resolved: R };
  readonly recordOf: (object: ResourceObject, resolved: R) => T;
  readonly asked?: (record: T, resolved: R) => T | undefined;
  /** Absent if hand-made objects need no grant. */
  readonly grants?: Grants<T>;
  readonly settled: (object: ResourceObject) => Omit<T, 'revision'> | Fault;
}

/** Keys are `namespace/name`. */
export const ownedResource = <T extends Owned, R extends Resolved>(
  of: OwnedKind<T, R>,
): Resource<T> => {
  const place = ({
    owner: { namespace },
    name,
  }: Omit<T, 'revision'>): { readonly namespace: string; readonly name: string } => ({
    namespace,
    name,
  });
  const signed = (
    record: Omit<T, 'revision'>,
    { bornAt, uid }: { readonly bornAt: string; readonly uid?: string },
  ): Written => {
    const written = of.written(record, bornAt);
    return {
      ...written,
      resolved: of.seals.sealed(of.kind, place(record), { uid, content: written.resolved }),
    };
  };
  return {
    kind: of.kind,
    plural: of.plural,
    ...(of.grants ? { grants: of.grants } : {}),
    place,
    find: (key) => ({
      namespace: key.slice(0, key.indexOf('/')),
      name: key.slice(key.indexOf('/') + 1),
    }),
    unique: ({ uid }) => `${of.label}=${uid}`,
    write: (record, before) =>
      signed(record, {
        bornAt: resolvedOf<R>(before)?.bornAt ?? new Date(of.now()).toISOString(),
        uid: before?.metadata.uid,
      }),
    read: (object) => readingOf(of, object),
    initialize: (object) => {
      const settled = of.settled(object);
      if ('reason' in settled) return settled;
      return {
        record: settled,
        ...signed(settled, {
          bornAt: new Date(settled.createdAt).toISOString(),
          uid: object.metadata.uid,
        }),
      };
    },
  };
};

const readingOf = <T extends Owned, R extends Resolved>(
  of: OwnedKind<T, R>,
  object: ResourceObject,
): Reading<T> => {
  if (of.teamOf(object.metadata.namespace ?? '') === undefined) return { kind: 'ignored' };
  const resolved = resolvedOf<R>(object);
  if (!resolved) return { kind: 'uninitialized', object };
  const verdict = of.seals.judge(object, resolved);
  if (resolved.format > of.format)
    return verdict === 'bound' || verdict === 'unbound'
      ? { kind: 'too-new', format: resolved.format }
      : laterFormat(object, resolved.format);
  if (verdict !== 'bound' && !matchesIdentity(object, resolved))
    return { kind: 'uninitialized', object };
  if (verdict === 'forged') return forged(object);
  const record = of.recordOf(object, resolved);
  const asked = of.asked?.(record, resolved);
  return {
    kind: 'record',
    record,
    ...(asked ? { asked: { object, record: asked } } : {}),
    ...mendedOf(object),
    standing: standingOf(object),
    ...(verdict === 'unbound' ? { unbound: object } : {}),
  };
};

const resolvedOf = <R>(object: ResourceObject | undefined): R | undefined =>
  object?.resolved as R | undefined; // matches the schema of the kind

const standingOf = ({ metadata, status }: ResourceObject): StandingObject => ({
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
  generation: metadata.generation,
  status,
});

const forged = (object: ResourceObject): Reading<never> => ({
  kind: 'wrong',
  object,
  fault: {
    reason: 'NotSealed',
    message:
      '`resolved` was not written by a daemon of this installation for this object; create ' +
      'the object again without it',
  },
});
