import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { IssuedApiKey } from '../../operations/operations.ts';
import type { ApiKeyDeletionWire, ApiKeyPromotionWire, ApiKeyWire, IssuedApiKeyWire } from '../schemas/api-keys.ts';
import { timestampOf } from './timestamp.ts';

/** Never with its hash. */
export const presentApiKey = (record: ApiKeyRecord): ApiKeyWire => ({
  keyId: record.keyId,
  name: `${record.namespace}/${record.shortName}`,
  user: record.user,
  team: record.team,
  role: record.role,
  description: record.description,
  ...(record.createdBy === undefined ? {} : { createdBy: record.createdBy }),
  issuedAt: timestampOf(record.issuedAt),
  expiresAt: timestampOf(record.expiresAt),
});

export const presentIssuedApiKey = ({ apiKey, record }: IssuedApiKey): IssuedApiKeyWire => ({ apiKey, ...presentApiKey(record) });

export const presentApiKeyDeletion = (keyId: string): ApiKeyDeletionWire => ({ keyId, status: 'deleted' });
export const presentApiKeyPromotion = (keyId: string): ApiKeyPromotionWire => ({ keyId, status: 'promoted' });
