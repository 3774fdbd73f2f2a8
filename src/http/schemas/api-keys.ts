import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { apiKeyNotFound } from '../../model/refusals.ts';
import type { PathParams } from '../route.ts';
import { limit, maybe, name, offset, pageOf, text, timestamp } from './common.ts';

const role = z.enum(['user', 'admin']);
const expiresAt = timestamp.transform((value) => Date.parse(value));
const own = { name: maybe(name), description: maybe(text(1_024)), expiresAt: maybe(expiresAt) };

/** `team`, `user` and `role` are an admin's to choose; the operation's row refuses them from others. */
export const CreateApiKeyBody = z.object({ ...own, team: maybe(name), user: maybe(name), role: maybe(role) });
export const AdminCreateApiKeyBody = z.object({ ...own, team: name, user: name, role: maybe(role) });

export const ApiKeyListQuery = z.object({ limit, offset });

export const ApiKeyPath: PathParams<{ keyId: string }> = {
  schema: z.object({ keyId: z.string().regex(/^[0-9A-Za-z]{12,32}$/) }),
  otherwise: apiKeyNotFound,
};

/** `{namespace}/{shortName}` in one segment (`%2F`), or the short name alone. */
export const ApiKeyNamePath: PathParams<{ name: string }> = {
  schema: z.object({ name: z.string().refine((value) => value.split('/').length <= 2 && value.split('/').every(isDnsLabel)) }),
  otherwise: apiKeyNotFound,
};

export const ApiKeyFullNamePath: PathParams<{ namespace: string; shortName: string }> = {
  schema: z.object({ namespace: z.string().refine(isDnsLabel), shortName: z.string().refine(isDnsLabel) }),
  otherwise: apiKeyNotFound,
};

export const ApiKey = z.object({
  keyId: z.string(),
  name: z.string(),
  user: z.string(),
  team: z.string(),
  role,
  description: z.string(),
  issuedAt: timestamp,
  expiresAt: timestamp,
});

export const IssuedApiKey = z.object({ apiKey: z.string(), ...ApiKey.shape });
export const ApiKeyPage = pageOf(ApiKey);
export const ApiKeyDeletion = z.object({ keyId: z.string(), status: z.literal('deleted') });

export type ApiKeyWire = z.infer<typeof ApiKey>;
export type ApiKeyDeletionWire = z.infer<typeof ApiKeyDeletion>;
export type IssuedApiKeyWire = z.infer<typeof IssuedApiKey>;
