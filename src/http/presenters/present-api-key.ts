import type { IssuedApiKey } from '../../operations/operations.ts';
import type { IssuedApiKeyWire } from '../schemas/api-keys.ts';
import { timestampOf } from './timestamp.ts';

export const presentIssuedApiKey = ({ apiKey, record }: IssuedApiKey): IssuedApiKeyWire => ({
  apiKey,
  keyId: record.keyId,
  name: `${record.namespace}/${record.shortName}`,
  user: record.user,
  team: record.team,
  role: record.role,
  description: record.description,
  issuedAt: timestampOf(record.issuedAt),
  expiresAt: timestampOf(record.expiresAt),
});
