import type { Revision } from './identifiers.ts';
import type { Tenant } from './tenant.ts';

/** What a user can have only so much of: claimed sandboxes; pools; replicas asked for, over all pools. */
export const QUOTA_RESOURCES = ['sandboxes', 'pools', 'replicas'] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/** A number for each. */
export type QuotaAmounts = Readonly<Record<QuotaResource, number>>;

/** The highest limit that can be set. */
export const HIGHEST_LIMIT: QuotaAmounts = { sandboxes: 1_000_000, pools: 100_000, replicas: 1_000_000 };

/** One user's own limits; where one is left out the configured one holds. */
export interface UserQuota extends Tenant {
  readonly revision: Revision;
  readonly limits: Partial<QuotaAmounts>;
}
