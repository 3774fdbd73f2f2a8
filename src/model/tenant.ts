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
  /**
   * When its key ends, in ms, where who uses it is told beforehand; absent: a key that was not made
   * to last.
   */
  readonly keyEndsAt?: number;
  /** Its key is gated, for rules of the policy. */
  readonly gated?: true;
  /** Users of the keys that its key was made by, and that those were made by. */
  readonly makers?: readonly string[];
}

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.namespace === b.namespace && a.team === b.team && a.user === b.user;

export const ACCESSES = ['user', 'team'] as const;
/** Who claims from a pool or an env: its owner alone, or every user of the owner's team. */
export type Access = (typeof ACCESSES)[number];

/** Has an owner, and may be shared with the owner's team. Absent: the owner's alone. */
export interface Shared {
  readonly owner: Tenant;
  readonly access?: 'team';
}

/** Whether the tenant sees it and claims from it. Only its owner and admins change it. */
export const mayUse = ({ owner, access }: Shared, tenant: Tenant): boolean =>
  sameTenant(owner, tenant) ||
  (access === 'team' && owner.namespace === tenant.namespace && owner.team === tenant.team);

/** As a record has it. */
export const accessField = (access: Access | undefined): Pick<Shared, 'access'> =>
  access === 'team' ? { access } : {};

/** One string per tenant, fit for a map. */
export const tenantKey = (tenant: Tenant): string =>
  `${tenant.namespace}/${tenant.team}/${tenant.user}`;

/** The tenant whose `tenantKey` it is. */
export const tenantOf = (key: string): Tenant => {
  const [namespace = '', team = '', user = ''] = key.split('/');
  return { namespace, team, user };
};
