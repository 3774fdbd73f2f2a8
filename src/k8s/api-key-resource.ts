import { z } from 'zod';
import type { ApiKeyRecord } from '../model/api-key.ts';
import { FORMAT } from './sandbox-resource.ts';
import type { Resource } from './resource.ts';

export const KEY_LABEL = 'sandpool.dev/key-id';

/** The spec of an `ApiKey`, named like the key: never its secret, only the HMAC of it under the pepper. */
export const ApiKeySpecSchema = z.object({
  format: z.int().min(1),
  keyId: z.string().regex(/^[0-9A-Za-z]{12,64}$/),
  team: z.string(),
  user: z.string(),
  role: z.enum(['user', 'admin']),
  description: z.string(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  global: z.boolean().optional(),
  issuedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
});
type ApiKeySpec = z.infer<typeof ApiKeySpecSchema>;

export const apiKeyResource: Resource<ApiKeyRecord> = {
  kind: 'ApiKey',
  plural: 'apikeys',
  place: ({ namespace, shortName }) => ({ namespace, name: shortName }),
  find: (key) => {
    const [namespace = '', name] = key.split('/');
    return name === undefined ? { labelSelector: `${KEY_LABEL}=${key}` } : { namespace, name };
  },
  unique: ({ keyId }) => `${KEY_LABEL}=${keyId}`,
  write: ({ keyId, team, user, role, description, hash, global, issuedAt, expiresAt }) => ({
    labels: { [KEY_LABEL]: keyId },
    spec: {
      format: FORMAT, keyId, team, user, role, description, hash, ...(global === undefined ? {} : { global }),
      issuedAt: new Date(issuedAt).toISOString(), expiresAt: new Date(expiresAt).toISOString(),
    } satisfies ApiKeySpec,
  }),
  read: ({ metadata, spec: given }) => {
    const { format, issuedAt, expiresAt, global, ...spec } = given as ApiKeySpec;
    if (format > FORMAT) return { kind: 'too-new', format };
    const record = {
      ...spec, ...(global === undefined ? {} : { global }), namespace: metadata.namespace ?? '', shortName: metadata.name, revision: metadata.resourceVersion,
      issuedAt: Date.parse(issuedAt), expiresAt: Date.parse(expiresAt),
    };
    return { kind: 'record', record };
  },
};
