/** Who owns what, and who is asking. */

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
  /** When its key ends, in ms, where who uses it is told beforehand; absent: a key that was not made to last. */
  readonly keyEndsAt?: number;
}

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.namespace === b.namespace && a.team === b.team && a.user === b.user;

/** One string per tenant, fit for a map. */
export const tenantKey = (tenant: Tenant): string => `${tenant.namespace}/${tenant.team}/${tenant.user}`;

/** Whose `tenantKey` it is. */
export const tenantOf = (key: string): Tenant => {
  const [namespace = '', team = '', user = ''] = key.split('/');
  return { namespace, team, user };
};
