/** Owners and callers. */

/** A user of a team; the namespace is the team's. All three are DNS-1123 labels. */
export interface Tenant {
  readonly namespace: string;
  readonly team: string;
  readonly user: string;
}

export type Role = 'user' | 'admin';

/** The authenticated source of a request. */
export interface Caller extends Tenant {
  readonly role: Role;
  readonly keyId: string;
  /** Expiry of a long-lived key in ms, for a warning to its user; absent for a short-lived key. */
  readonly keyEndsAt?: number;
  /** The key is gated, for rules of the policy. */
  readonly gated?: true;
  /** Users of all keys in the key's chain of makers. */
  readonly makers?: readonly string[];
}

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.namespace === b.namespace && a.team === b.team && a.user === b.user;

export const ACCESSES = ['user', 'team'] as const;
/** Users who may claim from a pool or an env: only its owner, or every user of the owner's team. */
export type Access = (typeof ACCESSES)[number];

/**
 * An owned object that may be shared with the owner's team. Without `access`, only the owner has
 * access.
 */
export interface Shared {
  readonly owner: Tenant;
  readonly access?: 'team';
}

/** Whether the tenant can see it and claim from it. Only its owner and admins may change it. */
export const mayUse = ({ owner, access }: Shared, tenant: Tenant): boolean =>
  sameTenant(owner, tenant) ||
  (access === 'team' && owner.namespace === tenant.namespace && owner.team === tenant.team);

/** The field as stored in a record. */
export const accessField = (access: Access | undefined): Pick<Shared, 'access'> =>
  access === 'team' ? { access } : {};

/** A unique string per tenant, for use as a map key. */
export const tenantKey = (tenant: Tenant): string =>
  `${tenant.namespace}/${tenant.team}/${tenant.user}`;

/** Inverse of `tenantKey`. */
export const tenantOf = (key: string): Tenant => {
  const [namespace = '', team = '', user = ''] = key.split('/');
  return { namespace, team, user };
};
