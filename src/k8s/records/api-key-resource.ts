import { z } from 'zod';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { CREATION_TOLERANCE_MS } from '../sandboxes/identity-annotations.ts';
import { laterFormat, mendedOf, type Resource, type ResourceObject } from '../api/resource.ts';
import { FORMAT } from '../api/resource.ts';
import type { ResourceTerms } from './owned-resource.ts';

const KEY_LABEL = 'sandpool.dev/key-id';

/** Holds only the HMAC of the secret under the pepper. Only daemons write it. */
export const ApiKeySpecSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  keyId: z.string().regex(/^[0-9A-Za-z]{12,64}$/),
  team: z.string(),
  user: z.string(),
  role: z.enum(['user', 'admin']),
  description: z.string(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** A sealed hash by which other clusters can verify the key. */
  verifier: z.string().max(128).optional(),
  global: z.boolean().optional(),
  /** Fingerprint of the manager whose promoted key this copies. */
  promotedBy: z.string().max(64).optional(),
  confirmedAt: z.iso.datetime().optional(),
  createdBy: z
    .string()
    .regex(/^[0-9A-Za-z]{12,64}$/)
    .optional(),
  gated: z.literal(true).optional(),
  makers: z.array(z.string().max(63)).max(64).optional(),
  issuedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  bornAt: z.iso.datetime().optional(),
  /** Without a seal the key is invalid, whatever its hash. */
  seal: z.string().max(64).optional(),
});
type ApiKeySpec = z.infer<typeof ApiKeySpecSchema>;

const KIND = 'ApiKey';

export const apiKeyResource = ({ seals, teamOf, now }: ResourceTerms): Resource<ApiKeyRecord> => ({
  kind: KIND,
  plural: 'apikeys',
  place: ({ namespace, shortName }) => ({ namespace, name: shortName }),
  find: (key) => {
    const [namespace = '', name] = key.split('/');
    return name === undefined ? { labelSelector: `${KEY_LABEL}=${key}` } : { namespace, name };
  },
  unique: ({ keyId }) => `${KEY_LABEL}=${keyId}`,
  write: (record, before) => {
    const { namespace, shortName: name, keyId } = record;
    const bornAt =
      (before?.spec as ApiKeySpec | undefined)?.bornAt ?? new Date(now()).toISOString();
    const content = specOf(record, bornAt);
    return {
      labels: { [KEY_LABEL]: keyId },
      spec: seals.sealed(KIND, { namespace, name }, { uid: before?.metadata.uid, content }),
    };
  },
  read: (object) => {
    if (teamOf(object.metadata.namespace ?? '') === undefined) return { kind: 'ignored' };
    const spec = object.spec as ApiKeySpec;
    const verdict = seals.judge(object, spec);
    if (spec.format > FORMAT)
      return verdict === 'bound' || verdict === 'unbound'
        ? { kind: 'too-new', format: spec.format }
        : laterFormat(object, spec.format);
    if (verdict === 'forged' || (verdict === 'unbound' && !isBornNow(object)))
      return { kind: 'wrong', object, fault: NOT_SEALED };
    return {
      kind: 'record',
      record: recordOf(object),
      ...mendedOf(object),
      ...(verdict === 'unbound' ? { unbound: object } : {}),
    };
  },
});

const specOf = (record: Omit<ApiKeyRecord, 'revision'>, bornAt: string): ApiKeySpec => ({
  format: FORMAT,
  keyId: record.keyId,
  team: record.team,
  user: record.user,
  role: record.role,
  description: record.description,
  hash: record.hash,
  verifier: record.verifier,
  global: record.global,
  promotedBy: record.promotedBy,
  confirmedAt: dateText(record.confirmedAt),
  createdBy: record.createdBy,
  gated: record.gated,
  makers: record.makers && [...record.makers],
  issuedAt: new Date(record.issuedAt).toISOString(),
  expiresAt: new Date(record.expiresAt).toISOString(),
  bornAt,
});

const dateText = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString();

const NOT_SEALED = {
  reason: 'NotSealed',
  message:
    'it was not written by this installation, or was changed since, and is not valid as a key',
};

/** The object that the key was written for, not a recreated one. */
const isBornNow = ({ metadata, spec }: ResourceObject): boolean =>
  Math.abs(
    Date.parse((spec as ApiKeySpec).bornAt ?? '') - Date.parse(metadata.creationTimestamp),
  ) <= CREATION_TOLERANCE_MS;

const recordOf = ({ metadata, spec: given }: ResourceObject): ApiKeyRecord => {
  const {
    format: _format,
    seal: _seal,
    bornAt: _bornAt,
    issuedAt,
    expiresAt,
    verifier,
    global,
    promotedBy,
    confirmedAt,
    createdBy,
    gated,
    makers,
    ...spec
  } = given as ApiKeySpec;
  return {
    ...spec,
    ...(verifier === undefined ? {} : { verifier }),
    ...(global === undefined ? {} : { global }),
    ...(promotedBy === undefined ? {} : { promotedBy }),
    ...(confirmedAt === undefined ? {} : { confirmedAt: Date.parse(confirmedAt) }),
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(gated === undefined ? {} : { gated }),
    ...(makers === undefined ? {} : { makers }),
    namespace: metadata.namespace ?? '',
    shortName: metadata.name,
    revision: metadata.resourceVersion,
    issuedAt: Date.parse(issuedAt),
    expiresAt: Date.parse(expiresAt),
  };
};
