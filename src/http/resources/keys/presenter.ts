import type { ApiKeyRecord } from '../../../model/api-key.ts';
import type { IssuedApiKey } from '../../../services/keys/key-operations.ts';
import type {
  ApiKeyDeletionWire,
  ApiKeysDeletionWire,
  ApiKeyPromotionWire,
  ApiKeyWire,
  IssuedApiKeyWire,
} from './schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

/** Never includes the hash. */
export const presentApiKey = (record: ApiKeyRecord): ApiKeyWire => ({
  keyId: record.keyId,
  name: `${record.namespace}/${record.shortName}`,
  user: record.user,
  team: record.team,
  role: record.role,
  description: record.description,
  createdBy: record.createdBy,
  gated: record.gated,
  issuedAt: timestampOf(record.issuedAt),
  expiresAt: timestampOf(record.expiresAt),
});

export const presentIssuedApiKey = ({ apiKey, record }: IssuedApiKey): IssuedApiKeyWire => ({
  apiKey,
  ...presentApiKey(record),
});

/** `revoked`: keys removed by a cascading deletion. */
export const presentApiKeyDeletion = (keyId: string, revoked?: number): ApiKeyDeletionWire => ({
  keyId,
  status: 'deleted',
  revoked,
});
export const presentApiKeysDeletion = (
  team: string,
  user: string,
  revoked: number,
): ApiKeysDeletionWire => ({ team, user, status: 'deleted', revoked });
export const presentApiKeyPromotion = (keyId: string): ApiKeyPromotionWire => ({
  keyId,
  status: 'promoted',
});
