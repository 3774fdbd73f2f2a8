/** A user of a team; the namespace is the team's. All three are DNS-1123 labels. */
export interface Tenant {
  readonly namespace: string;
  readonly team: string;
  readonly user: string;
}

export type Role = 'user' | 'admin';

export interface Caller extends Tenant {
  readonly role: Role;
  readonly keyId: string;
  /** Only for a long-lived key, to warn its user. */
  readonly keyEndsAt?: number;
  readonly gated?: true;
  readonly makers?: readonly string[];
}

export const sameTenant = (a: Tenant, b: Tenant): boolean =>
  a.namespace === b.namespace && a.team === b.team && a.user === b.user;

export const ACCESSES = ['user', 'team'] as const;
export type Access = (typeof ACCESSES)[number];

export interface Shared {
  readonly owner: Tenant;
  readonly access?: 'team';
}

/** The tenant can see it and claim from it. Only its owner and admins may change it. */
export const mayUse = ({ owner, access }: Shared, tenant: Tenant): boolean =>
  sameTenant(owner, tenant) ||
  (access === 'team' && owner.namespace === tenant.namespace && owner.team === tenant.team);

export const accessField = (access: Access | undefined): Pick<Shared, 'access'> =>
  access === 'team' ? { access } : {};

export const tenantKey = (tenant: Tenant): string =>
  `${tenant.namespace}/${tenant.team}/${tenant.user}`;

export const tenantOf = (key: string): Tenant => {
  const [namespace = '', team = '', user = ''] = key.split('/');
  return { namespace, team, user };
};
