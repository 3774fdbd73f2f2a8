import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Caller, Role } from '../../model/tenant.ts';
import type { Page, PageRequest } from '../../actors/views.ts';

/** The use cases of API keys, and who is behind one. */
export interface KeyOperations {
  /**
   * The caller behind a `SERVICE-API-KEY` header's value. Refuses with API_KEY_REQUIRED or
   * INVALID_API_KEY.
   */
  readonly authenticate: (key: string | undefined) => Caller;
  /** Authenticates a key again that was refused: another replica may have made it a moment ago. */
  readonly authenticateAfresh: (key: string | undefined) => Promise<Caller>;
  readonly createApiKey: (caller: Caller, request: ApiKeyRequest) => Promise<IssuedApiKey>;
  /** For `/admin`: the key of any team and user; they default to the caller's. */
  readonly createApiKeyForTenant: (
    caller: Caller,
    request: AdminApiKeyRequest,
  ) => Promise<IssuedApiKey>;
  /** The keyId of the key of that name. Refuses with API_KEY_NOT_FOUND. */
  readonly keyIdOf: (name: ApiKeyName) => Promise<string>;
  /** Returns a key of the caller's; to an admin any of its namespace. Refuses as deleteApiKey. */
  readonly getApiKey: (caller: Caller, keyId: string) => Promise<ApiKeyRecord>;
  readonly listApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  readonly listAllApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  /**
   * Durable, and the key worth nothing, when it resolves; with `cascade` all that it made too.
   * Returns how many those are.
   */
  readonly deleteApiKey: (caller: Caller, keyId: string, cascade: boolean) => Promise<number>;
  /** For `/admin`: deletes the key of that name as `deleteApiKey` does. */
  readonly deleteApiKeyByName: (
    caller: Caller,
    name: ApiKeyName,
    cascade: boolean,
  ) => Promise<{ readonly keyId: string; readonly revoked: number }>;
  /**
   * For `/admin`: all keys of a user, with `cascade` what they made too. Answers how many those
   * are.
   */
  readonly deleteApiKeysOf: (
    caller: Caller,
    of: { readonly team: string; readonly user: string; readonly cascade: boolean },
  ) => Promise<number>;
  /**
   * For `/admin`: has the key count on all worker clusters; returns its id. Refuses with
   * ALREADY_GLOBAL, then with CLUSTER_UNAVAILABLE.
   */
  readonly promoteApiKey: (caller: Caller, name: ApiKeyName) => Promise<string>;
  /**
   * Calls `ended` once, as soon as the key is revoked or has expired; at once where it is. Answers
   * the way to end it.
   */
  readonly followKey: (keyId: string, ended: () => void) => () => void;
  /**
   * Issues the tokens by which the caller's key is shown to the sandbox alone; `clusterId`: to one
   * of that other cluster.
   */
  readonly sandboxTokens: (
    caller: Pick<Caller, 'keyId'>,
    sandboxId: InstanceId,
    clusterId?: string,
  ) => SandboxTokens;
  /** Returns who brings such a token; undefined where it is none, or its key is not good now. */
  readonly bearerOf: (token: string) => Promise<TokenBearer | undefined>;
  /**
   * Returns who signed a link to a file; undefined where it can't be told, or its key is not good
   * now. Refuses with RATE_LIMITED.
   */
  readonly signerOf: (link: SignedLink) => Promise<TokenBearer | undefined>;
  /**
   * Returns whoever comes to a running sandbox without a token as its owner's guest, who has no
   * key; undefined where none runs, as far as is known here. Refuses with INVALID_TOKEN where it
   * has the host's network.
   */
  readonly guestOf: (sandboxId: InstanceId) => Caller | undefined;
}

export interface SignedLink {
  /** Undefined: the link does not say. */
  readonly sandboxId: InstanceId | undefined;
  /** The other cluster that has it; absent: this one. */
  readonly clusterId?: string;
  /** The group of addresses that it comes from, which have one share. */
  readonly from: string;
  readonly signature: string;
  /** Comes before the access token in what was signed, and `after` behind it. */
  readonly before: string;
  readonly after: string;
}

/** Tokens of one sandbox, for as long as the API key is good that they were issued to. */
export interface SandboxTokens {
  /** Is asked for by what the daemon does in the sandbox: commands, files. */
  readonly access: string;
  /** Is asked for by the sandbox's own ports. */
  readonly traffic: string;
}

export interface TokenBearer {
  readonly caller: Caller;
  readonly sandboxId: InstanceId;
  /** The other cluster that has the sandbox; absent: this one. */
  readonly clusterId?: string;
  readonly goodFor: keyof SandboxTokens;
}

export interface ApiKeyName {
  readonly namespace: string;
  readonly shortName: string;
}

export interface ApiKeyRequest {
  /**
   * A secret that a request under an Idempotency-Key shares with its repetitions alone: they get
   * the same key.
   */
  readonly seed?: Buffer;
  readonly name?: string;
  readonly description?: string;
  /** Requests of the key are gated; a key that a gated one makes is so in any case. */
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
