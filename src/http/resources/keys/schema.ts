import { z } from 'zod';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { apiKeyNotFound } from '../../../model/refusals.ts';
import type { PathParams } from '../../corridor/route.ts';
import {
  clusterMadeHere,
  flag,
  limit,
  maybe,
  name,
  offset,
  pageOf,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';

const role = z.enum(['user', 'admin']);
const expiresAt = timestamp.transform((value) => Date.parse(value));
const shortName = maybe(name).describe(
  'A DNS label, unique in the namespace; else one is made up.',
);
const description = maybe(text(1_024));

/** Only admins may set `team`, `user` and `role`. The row refuses these fields of others. */
export const CreateApiKeyBody = z.object({
  name: shortName,
  clusterID: clusterMadeHere,
  description,
  expiresAt: maybe(expiresAt).describe(
    'At most a year ahead (`keys.maxLifetime`), and no later than the key that asks ends. ' +
      'Left out: 90 days (`keys.defaultLifetime`), or when that key ends.',
  ),
  team: maybe(name).describe('Admins alone, as in `POST /admin/api-keys`.'),
  user: maybe(name).describe('The same.'),
  role: maybe(role).describe('The same.'),
  gated: maybe(z.literal(true)).describe(
    'For the policy of approvals: rules may hold what it asks. A key that a gated key makes is ' +
      'gated in any case.',
  ),
});

export const AdminCreateApiKeyBody = z.object({
  name: shortName,
  clusterID: clusterMadeHere,
  description,
  expiresAt: maybe(expiresAt).describe('As in `POST /api-keys`.'),
  team: name.describe('A DNS label. The namespace follows from it (`namespacePattern`).'),
  user: name.describe('A DNS label.'),
  role: maybe(role).describe('Left out: `"user"`.'),
  gated: maybe(z.literal(true)).describe(
    'For the policy of approvals: rules may hold what it asks. A key that a gated key makes is ' +
      'gated in any case.',
  ),
});

export const ApiKeyListQuery = z.object({ limit, offset });

const cascade = flag
  .default(false)
  .describe('Revoke what the key made too, and what that made. `?cascade` alone is true.');
export const DeleteApiKeyQuery = z.object({ cascade });
export const DeleteApiKeysQuery = z.object({
  team: name.describe('Of the user.'),
  user: name.describe('All of whose keys go.'),
  cascade: flag
    .default(false)
    .describe('Revoke what these keys made too, also keys of others. `?cascade` alone is true.'),
});

export const ApiKeyPath: PathParams<{ keyId: string }> = {
  schema: z.object({
    keyId: z
      .string()
      .regex(/^[0-9A-Za-z]{12,32}$/)
      .describe("Of a key of the caller's."),
  }),
  otherwise: apiKeyNotFound,
};

/** `{namespace}/{shortName}` in one segment (with `%2F`), or only the short name. */
export const ApiKeyNamePath: PathParams<{ name: string }> = {
  schema: z.object({
    name: z
      .string()
      .refine((value) => value.split('/').length <= 2 && value.split('/').every(isDnsLabel))
      .describe('`{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone.'),
  }),
  otherwise: apiKeyNotFound,
};

export const ApiKeyFullNamePath: PathParams<{ namespace: string; shortName: string }> = {
  schema: z.object({
    namespace: z.string().refine(isDnsLabel),
    shortName: z.string().refine(isDnsLabel),
  }),
  otherwise: apiKeyNotFound,
};

const keyFields = {
  keyId: z.string().describe('Its middle part. Logs show it.'),
  name: z.string().describe('`{namespace}/{name}`.'),
  user: z.string(),
  team: z.string(),
  role,
  description: z.string(),
  createdBy: maybe(z.string()).describe(
    'The `keyId` of the key that made it, which may be gone by now. Left out: the daemon ' +
      'made it.',
  ),
  gated: maybe(z.literal(true)).describe('Rules of the policy may hold what it asks.'),
  issuedAt: timestamp,
  expiresAt: timestamp,
};

export const ApiKey = z.object(keyFields).meta({ id: 'ApiKey' });
export const IssuedApiKey = z
  .object({ apiKey: z.string().describe('The key itself: a secret.'), ...keyFields })
  .meta({ id: 'IssuedApiKey' });
export const ApiKeyPage = pageOf(ApiKey).meta({ id: 'ApiKeyPage' });
export const ApiKeyDeletion = z
  .object({
    keyId: z.string(),
    status: z.literal('deleted'),
    revoked: maybe(z.int()).describe('With `cascade`: how many keys went, this one too.'),
  })
  .meta({ id: 'ApiKeyDeletion' });
export const ApiKeysDeletion = z
  .object({
    team: z.string(),
    user: z.string(),
    status: z.literal('deleted'),
    revoked: z.int().describe('How many keys went.'),
  })
  .meta({ id: 'ApiKeysDeletion' });

export const ApiKeyPromotion = z
  .object({ keyId: z.string(), status: z.literal('promoted') })
  .meta({ id: 'ApiKeyPromotion' });

export type ApiKeyWire = z.infer<typeof ApiKey>;
export type ApiKeyDeletionWire = z.infer<typeof ApiKeyDeletion>;
export type ApiKeysDeletionWire = z.infer<typeof ApiKeysDeletion>;
export type ApiKeyPromotionWire = z.infer<typeof ApiKeyPromotion>;
export type IssuedApiKeyWire = z.infer<typeof IssuedApiKey>;
