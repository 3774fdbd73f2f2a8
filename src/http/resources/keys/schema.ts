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
  'A DNS label, unique in the namespace. Generated if absent.',
);
const description = maybe(text(1_024));

/** The row refuses `team`, `user` and `role` from non-admins. */
export const CreateApiKeyBody = z.object({
  name: shortName,
  clusterID: clusterMadeHere,
  description,
  expiresAt: maybe(expiresAt).describe(
    'At most a year ahead (`keys.maxLifetime`), and no later than the calling key expires. ' +
      'Default: 90 days (`keys.defaultLifetime`), or until the calling key expires.',
  ),
  team: maybe(name).describe('Only for admins, as in `POST /admin/api-keys`.'),
  user: maybe(name).describe('Only for admins.'),
  role: maybe(role).describe('Only for admins.'),
  gated: maybe(z.literal(true)).describe(
    'Requests with this key are subject to the approval policy, whose rules may hold them. ' +
      'A key that a gated key creates is always gated.',
  ),
});

export const AdminCreateApiKeyBody = z.object({
  name: shortName,
  clusterID: clusterMadeHere,
  description,
  expiresAt: maybe(expiresAt).describe('As in `POST /api-keys`.'),
  team: name.describe('A DNS label. The namespace follows from it (`namespacePattern`).'),
  user: name.describe('A DNS label.'),
  role: maybe(role).describe('Default: `"user"`.'),
  gated: maybe(z.literal(true)).describe(
    'Requests with this key are subject to the approval policy, whose rules may hold them. ' +
      'A key that a gated key creates is always gated.',
  ),
});

export const ApiKeyListQuery = z.object({ limit, offset });

const cascade = flag
  .default(false)
  .describe(
    'Also revoke the keys created by this key, and the keys created by those. `?cascade` ' +
      'without a value means true.',
  );
export const DeleteApiKeyQuery = z.object({ cascade });
export const DeleteApiKeysQuery = z.object({
  team: name.describe('Team of the user.'),
  user: name.describe('User whose keys are revoked.'),
  cascade: flag
    .default(false)
    .describe(
      'Also revoke the keys that these keys created, including keys of other users. ' +
        '`?cascade` without a value means true.',
    ),
});

export const ApiKeyPath: PathParams<{ keyId: string }> = {
  schema: z.object({
    keyId: z
      .string()
      .regex(/^[0-9A-Za-z]{12,32}$/)
      .describe("Id of one of the caller's keys."),
  }),
  otherwise: apiKeyNotFound,
};

/** `{namespace}/{shortName}` in one segment, or only the short name. */
export const ApiKeyNamePath: PathParams<{ name: string }> = {
  schema: z.object({
    name: z
      .string()
      .refine((value) => value.split('/').length <= 2 && value.split('/').every(isDnsLabel))
      .describe('`{namespace}/{shortName}` with `/` as `%2F`, or only the short name.'),
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
  keyId: z.string().describe('The middle part of the key. It appears in logs.'),
  name: z.string().describe('`{namespace}/{name}`.'),
  user: z.string(),
  team: z.string(),
  role,
  description: z.string(),
  createdBy: maybe(z.string()).describe(
    '`keyId` of the key that created this key; that key may no longer exist. Absent if the ' +
      'daemon created it.',
  ),
  gated: maybe(z.literal(true)).describe('The approval policy may hold requests with this key.'),
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
    revoked: maybe(z.int()).describe('With `cascade`: number of revoked keys, including this key.'),
  })
  .meta({ id: 'ApiKeyDeletion' });
export const ApiKeysDeletion = z
  .object({
    team: z.string(),
    user: z.string(),
    status: z.literal('deleted'),
    revoked: z.int().describe('Number of revoked keys.'),
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
