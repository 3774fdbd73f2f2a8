import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Caller, Role } from '../../model/tenant.ts';
import type { Page, PageRequest } from '../../actors/views.ts';

export interface KeyOperations {
  /** Refuses with API_KEY_REQUIRED or INVALID_API_KEY. */
  readonly authenticate: (key: string | undefined) => Caller;
  /** Another replica may have just created a refused key. */
  readonly authenticateAfresh: (key: string | undefined) => Promise<Caller>;
  readonly createApiKey: (caller: Caller, request: ApiKeyRequest) => Promise<IssuedApiKey>;
  /** For `/admin`: any team and user; defaults to the caller's. */
  readonly createApiKeyForTenant: (
    caller: Caller,
    request: AdminApiKeyRequest,
  ) => Promise<IssuedApiKey>;
  readonly keyIdOf: (name: ApiKeyName) => Promise<string>;
  /** The caller's; an admin may get any key of the namespace. Refuses like deleteApiKey. */
  readonly getApiKey: (caller: Caller, keyId: string) => Promise<ApiKeyRecord>;
  readonly listApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  readonly listAllApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  /**
   * Durable when it resolves. `cascade` also revokes the keys that it made; returns their number.
   */
  readonly deleteApiKey: (caller: Caller, keyId: string, cascade: boolean) => Promise<number>;
  readonly deleteApiKeyByName: (
    caller: Caller,
    name: ApiKeyName,
    cascade: boolean,
  ) => Promise<{ readonly keyId: string; readonly revoked: number }>;
  /**
   * For `/admin`; with `cascade` also the keys that they made. Returns the number of deleted keys.
   */
  readonly deleteApiKeysOf: (
    caller: Caller,
    of: { readonly team: string; readonly user: string; readonly cascade: boolean },
  ) => Promise<number>;
  /**
   * For `/admin`. Returns the key's id. Refuses with ALREADY_GLOBAL, then with CLUSTER_UNAVAILABLE.
   */
  readonly promoteApiKey: (caller: Caller, name: ApiKeyName) => Promise<string>;
  /**
   * Calls `ended` once, when the key is revoked or expires; at once if it already is. Returns a
   * function that unsubscribes.
   */
  readonly followKey: (keyId: string, ended: () => void) => () => void;
  /**
   * Tokens stand for the caller's key in one sandbox only. `clusterId` is set if the sandbox is on
   * another cluster.
   */
  readonly sandboxTokens: (
    caller: Pick<Caller, 'keyId'>,
    sandboxId: InstanceId,
    clusterId?: string,
  ) => SandboxTokens;
  /** Undefined if the token is malformed or its key is invalid. */
  readonly bearerOf: (token: string) => Promise<TokenBearer | undefined>;
  /** Undefined if the signer can't be found or the key is invalid. Refuses with RATE_LIMITED. */
  readonly signerOf: (link: SignedLink) => Promise<TokenBearer | undefined>;
  /**
   * The owner's guest, without a key. Undefined if this replica knows no such running sandbox.
   * Refuses with INVALID_TOKEN if the sandbox has the host's network.
   */
  readonly guestOf: (sandboxId: InstanceId) => Caller | undefined;
}

export interface SignedLink {
  readonly sandboxId: InstanceId | undefined;
  readonly clusterId?: string;
  /** Group of client addresses that shares one allowance. */
  readonly from: string;
  readonly signature: string;
  /** The signed text is `before`, the access token, then `after`. */
  readonly before: string;
  readonly after: string;
}

/** Valid as long as the API key to which they were issued. */
export interface SandboxTokens {
  /** For the daemon's operations in the sandbox: commands, files. */
  readonly access: string;
  /** For the sandbox's own ports. */
  readonly traffic: string;
}

export interface TokenBearer {
  readonly caller: Caller;
  readonly sandboxId: InstanceId;
  readonly clusterId?: string;
  readonly goodFor: keyof SandboxTokens;
}

export interface ApiKeyName {
  readonly namespace: string;
  readonly shortName: string;
}

export interface ApiKeyRequest {
  /**
   * A secret shared only by repeats of a request under one Idempotency-Key, so that they get the
   * same key.
   */
  readonly seed?: Buffer;
  readonly name?: string;
  readonly description?: string;
  /** Requests of the key need approval. A key made by a gated key is always gated. */
  readonly gated?: true;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

export interface AdminApiKeyRequest extends ApiKeyRequest {
  readonly team?: string;
  readonly user?: string;
  readonly role?: Role;
}

export interface IssuedApiKey {
  readonly record: ApiKeyRecord;
  readonly apiKey: string;
}
