import { randomInt } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { Quotas } from '../../contracts/coordination/quotas.ts';
import { RecordExists } from '../../contracts/record-store.ts';
import { type ApiKeyText, formatApiKey } from '../../model/api-key-text.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { apiKeyPromotedElsewhere } from '../../model/fleet/cluster-refusals.ts';
import { REQUEST_KEPT_MS } from '../../model/request-fingerprint.ts';
import {
  adminRequired,
  idempotencyKeyReused,
  invalidApiKey,
  invalidArgument,
  apiKeyAlreadyExists,
  type Refusal,
} from '../../model/refusals.ts';
import { sameTenant, type Caller, type Role, type Tenant } from '../../model/tenant.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { mintApiKey, secretMatches, seededApiKeyText } from './mint-api-key.ts';
import type { AdminApiKeyRequest, ApiKeyRequest, IssuedApiKey } from './key-operations.ts';

export interface CreateApiKeyDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly namespaceOf: (team: string) => string;
  /** If the request gives no expiry. */
  readonly defaultLifetimeMs: number;
  readonly maxLifetimeMs: number;
  readonly creation: 'everyone' | 'admins';
  readonly coordination: Pick<Quotas, 'expectUse'>;
  /** The request came over a worker's link, with a key that its manager claims. */
  readonly isLinked: (caller: Caller) => boolean;
}

/**
 * With the caller's role. A key made by a key records its maker, and expires with it at the latest.
 */
export const createApiKey =
  (deps: CreateApiKeyDeps) =>
  (caller: Caller, request: ApiKeyRequest): Promise<IssuedApiKey> =>
    issue(deps, {
      caller,
      tenant: { namespace: caller.namespace, team: caller.team, user: caller.user },
      role: caller.role,
      request,
    });

/**
 * For any team and user (default: the caller's). The HTTP layer must check that the caller is an
 * admin.
 */
export const createApiKeyForTenant =
  (deps: CreateApiKeyDeps) =>
  (caller: Caller, request: AdminApiKeyRequest): Promise<IssuedApiKey> => {
    const team = request.team ?? caller.team;
    const tenant = { namespace: deps.namespaceOf(team), team, user: request.user ?? caller.user };
    return issue(deps, { caller, tenant, role: request.role ?? 'user', request });
  };

const NAME_ATTEMPTS = 3;

interface Wanted {
  readonly caller: Caller;
  readonly tenant: Tenant;
  readonly role: Role;
  readonly request: ApiKeyRequest;
}

const madeAtManager = (): Refusal =>
  apiKeyPromotedElsewhere('this key can only create keys at its manager');

const issue = async (deps: CreateApiKeyDeps, wanted: Wanted): Promise<IssuedApiKey> => {
  const { request } = wanted;
  const issuedAt = deps.clock.now();
  const maker = await makerOf(deps, wanted.caller);
  const expiresAt = endOf(deps, { asked: request.expiresAt, issuedAt, maker });
  const seeded = request.seed && seededApiKeyText(request.seed, deps.pepper);
  const before = seeded && (await recordOf(deps.apiKeys, seeded.keyId));
  const isRepeated = before && before.issuedAt > issuedAt - REQUEST_KEPT_MS;
  if (isRepeated) return issuedAgain(deps, before, { ...wanted, text: seeded });
  const text = before ? undefined : seeded; // uses its own text
  return await issueNamed(deps, { ...wanted, maker, issuedAt, expiresAt, text });
};

const makerOf = async (deps: CreateApiKeyDeps, caller: Caller): Promise<ApiKeyRecord> => {
  if (deps.creation === 'admins' && caller.role !== 'admin') throw adminRequired();
  // A manager could claim the key of an admin of this cluster, and keep the keys that it makes
  // after a cut-off.
  if (deps.isLinked(caller)) throw madeAtManager();
  const maker = await deps.apiKeys.good(caller.keyId);
  if (!maker) throw invalidApiKey();
  // the manager could not revoke them with their maker
  if (maker.promotedBy !== undefined) throw madeAtManager();
  return maker;
};

interface Issuing extends Wanted {
  readonly maker: ApiKeyRecord;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly text: ApiKeyText | undefined;
}

const issueNamed = async (deps: CreateApiKeyDeps, issuing: Issuing): Promise<IssuedApiKey> => {
  const { name } = issuing.request;
  for (let attempt = 1; ; attempt += 1)
    try {
      return await issueAs(deps, name ?? generatedName(), issuing);
    } catch (error) {
      if (!(error instanceof RecordExists)) throw error;
      if (name !== undefined) throw apiKeyAlreadyExists();
      if (attempt === NAME_ATTEMPTS) throw error;
    }
};

const issueAs = async (
  { apiKeys, coordination, pepper }: CreateApiKeyDeps,
  shortName: string,
  { tenant, role, request, maker, issuedAt, expiresAt, text }: Issuing,
): Promise<IssuedApiKey> => {
  const spec = {
    tenant,
    role,
    shortName,
    description: request.description ?? '',
    createdBy: maker.keyId,
    gated: maker.gated || request.gated ? (true as const) : undefined,
    makers: makersOf(maker),
    issuedAt,
    expiresAt,
  };
  const minted = mintApiKey(spec, pepper, text);
  const record = await apiKeys.create(minted.record);
  // A concurrent revocation of the maker looks for its keys after the maker is gone, and this check
  // runs after the new key exists: at least one of them sees the other.
  if (!(await apiKeys.stands(maker.keyId))) {
    await apiKeys.remove(record);
    throw invalidApiKey();
  }
  coordination.expectUse(tenant);
  return { record, apiKey: minted.apiKey };
};

/** Beginning with the direct maker. */
const MOST_MAKERS = 32;

const makersOf = ({ user, makers = [] }: ApiKeyRecord): readonly string[] =>
  [...new Set([user, ...makers])].slice(0, MOST_MAKERS);

interface Asking {
  readonly asked: number | undefined;
  readonly issuedAt: number;
  readonly maker: ApiKeyRecord;
}

/** A requested expiry is granted or refused. The default expiry is never later than the maker's. */
const endOf = (
  { defaultLifetimeMs, maxLifetimeMs }: CreateApiKeyDeps,
  { asked, issuedAt, maker }: Asking,
): number => {
  if (asked === undefined)
    return Math.min(issuedAt + Math.min(defaultLifetimeMs, maxLifetimeMs), maker.expiresAt);
  if (asked <= issuedAt) throw invalidArgument('expiresAt', 'must be in the future');
  if (asked > issuedAt + maxLifetimeMs) {
    throw invalidArgument(
      'expiresAt',
      `must be within ${Math.floor(maxLifetimeMs / 86_400_000)} days`,
    );
  }
  if (asked > maker.expiresAt) {
    const end = new Date(maker.expiresAt).toISOString();
    throw invalidArgument(
      'expiresAt',
      `must not be later than the expiry of the requesting key, ${end}`,
    );
  }
  return asked;
};

const recordOf = async (
  apiKeys: ApiKeyMirror,
  keyId: string,
): Promise<ApiKeyRecord | undefined> => {
  if (!apiKeys.find(keyId)) await apiKeys.lookUp(keyId);
  return apiKeys.find(keyId);
};

/**
 * Issued under the same seed, if its answer was lost. Refuses with IDEMPOTENCY_KEY_REUSED if that
 * request differed.
 */
const issuedAgain = (
  { pepper }: CreateApiKeyDeps,
  record: ApiKeyRecord,
  { tenant, role, request, text }: Wanted & { readonly text: ApiKeyText },
): IssuedApiKey => {
  const { name, description = '', expiresAt } = request;
  const same =
    secretMatches(text.secret, record, pepper) &&
    sameTenant(record, tenant) &&
    record.role === role &&
    record.description === description &&
    (name ?? record.shortName) === record.shortName &&
    (expiresAt ?? record.expiresAt) === record.expiresAt;
  if (!same) throw idempotencyKeyReused();
  return { record, apiKey: formatApiKey(text) };
};

const generatedName = (): string =>
  `key-${randomInt(2 ** 47)
    .toString(36)
    .padStart(10, '0')}`;
