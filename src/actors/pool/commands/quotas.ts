import type { Quotas } from '../../../contracts/coordination/quotas.ts';
import type { Tenant } from '../../../model/tenant.ts';
import type { PoolOperations } from './pool-operations.ts';
import type { QuotaLimits } from './quota-limits.ts';
import type { QuotaView } from '../../views.ts';

export interface QuotasDeps {
  readonly quotaLimits: QuotaLimits;
  readonly coordination: Pick<Quotas, 'used'>;
  readonly namespaceOf: (team: string) => string;
}

/** Operation `GET /quotas`. */
export const getQuotas =
  (deps: QuotasDeps): PoolOperations['getQuotas'] =>
  (caller) =>
    viewOf(deps, caller);

/** Operation `GET /admin/quotas/{team}/{user}`. */
export const getQuotasOf =
  (deps: QuotasDeps): PoolOperations['getQuotasOf'] =>
  (_caller, { team, user }) =>
    viewOf(deps, { namespace: deps.namespaceOf(team), team, user });

/**
 * Durable when this resolves (operation `PUT /admin/quotas/{team}/{user}`). A limit below the usage
 * ends nothing, but blocks growth.
 */
export const setQuotasOf =
  (deps: QuotasDeps): PoolOperations['setQuotasOf'] =>
  async (_caller, { team, user }, change) => {
    const tenant = { namespace: deps.namespaceOf(team), team, user };
    // first, so that nothing is written if the usage can't be read
    const used = await deps.coordination.used(tenant);
    return { tenant, limits: await deps.quotaLimits.set(tenant, change), used };
  };

const viewOf = async (
  { quotaLimits, coordination }: QuotasDeps,
  { namespace, team, user }: Tenant,
): Promise<QuotaView> => {
  const tenant = { namespace, team, user };
  const [limits, used] = await Promise.all([quotaLimits.read(tenant), coordination.used(tenant)]);
  return { tenant, limits, used };
};
