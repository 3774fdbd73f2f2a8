import { plainAmount, QUOTA_RESOURCES } from '../../../model/pools/quota.ts';
import type { QuotaView } from '../../../actors/views.ts';
import type { QuotaListWire } from './schema.ts';

export const presentQuotas = ({
  tenant: { team, user },
  limits,
  used,
}: QuotaView): QuotaListWire => {
  const items = QUOTA_RESOURCES.filter((resource) => Number.isFinite(limits[resource])).map(
    (resource) => ({
      name: `${team}/${user}`,
      resource,
      limit: plainAmount(resource, limits[resource]),
      used: plainAmount(resource, used[resource]),
      remaining: plainAmount(resource, Math.max(0, limits[resource] - used[resource])),
    }),
  );
  return { items, total: items.length };
};
