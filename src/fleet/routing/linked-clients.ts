import type { IdentityCheck } from '../link/worker-link.ts';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { CLAIM_KEY_HEADER, IDENTITY_HEADER } from '../../model/fleet/identity-header.ts';
import { invalidApiKey, Refusal } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { Clients } from '../../http/limits/clients.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { TokenKeys } from '../../actors/sandbox/commands/terminals.ts';

export interface LinkedClientsDeps {
  readonly clients: Clients;
  readonly checkOf: (connection: Duplex) => IdentityCheck | undefined;
  readonly remember: (caller: Caller) => void;
}

/**
 * Authenticates requests over a worker's link by the manager's signed identity. All other requests
 * need a key, even if they claim an identity.
 */
export const linkedClients = ({ clients, checkOf, remember }: LinkedClientsDeps): Clients => {
  const known = new WeakMap<IncomingMessage, Caller | Refusal>();
  const linked = new WeakSet<Caller>();
  const overLink = (request: IncomingMessage): Caller | Refusal | undefined => {
    const seen = known.get(request);
    if (seen) return seen;
    const check = checkOf(request.socket);
    if (!check) return undefined;
    const caller = identified(request, check) ?? invalidApiKey();
    known.set(request, caller);
    if (!(caller instanceof Refusal)) {
      linked.add(caller);
      remember(caller);
    }
    return caller;
  };
  const knownCaller: Clients['knownCaller'] = (request) => {
    const caller = overLink(request);
    if (caller instanceof Refusal) return undefined;
    return caller ?? clients.knownCaller(request);
  };
  return {
    ...clients,
    isLinked: (request) => checkOf(request.socket) !== undefined,
    knownCaller,
    tenantOf: (request) => {
      const caller = knownCaller(request);
      return caller && tenantKey(caller);
    },
    authenticate: (request) => {
      const caller = overLink(request);
      if (caller instanceof Refusal) throw caller;
      return caller ?? clients.authenticate(request);
    },
    // the manager itself ends forwarded connections when the key ends
    followKey: (caller, ended) =>
      linked.has(caller) ? () => undefined : clients.followKey(caller, ended),
  };
};

const identified = (request: IncomingMessage, check: IdentityCheck): ReturnType<IdentityCheck> => {
  const identity = request.headers[IDENTITY_HEADER];
  const key = request.headers['idempotency-key'] ?? request.headers[CLAIM_KEY_HEADER];
  if (typeof identity !== 'string') return undefined;
  return check(identity, {
    method: request.method ?? '',
    target: request.url ?? '',
    idempotencyKey: typeof key === 'string' ? key : undefined,
  });
};

/** Exceeds the open terminals and their tokens. */
const MOST_CALLERS = 20_000;

/**
 * Callers that came over a link of this worker: only the manager knows their keys, and ends their
 * connections with the keys. So these keys are valid only on links.
 */
export class LinkedCallers {
  readonly #callers = new Map<string, Caller>();
  readonly #came = new WeakSet<Caller>();

  came(caller: Caller): boolean {
    return this.#came.has(caller);
  }

  remember(caller: Caller): void {
    this.#came.add(caller);
    this.#callers.delete(caller.keyId);
    this.#callers.set(caller.keyId, caller);
    if (this.#callers.size <= MOST_CALLERS) return;
    for (const oldest of this.#callers.keys()) {
      this.#callers.delete(oldest);
      return;
    }
  }

  besides(apiKeys: Pick<ApiKeyMirror, 'good' | 'find' | 'followEnd'>): TokenKeys {
    return {
      good: async (keyId, overLink) =>
        (overLink ? this.#callers.get(keyId) : undefined) ?? (await apiKeys.good(keyId)),
      find: (keyId) => apiKeys.find(keyId) ?? this.#callers.get(keyId),
      followEnd: (keyId, ended, overLink) =>
        overLink && !apiKeys.find(keyId) && this.#callers.has(keyId)
          ? () => undefined
          : apiKeys.followEnd(keyId, ended),
      linked: (keyId) => (apiKeys.find(keyId) ? undefined : this.#callers.get(keyId)),
      remember: (caller) => this.remember(caller),
    };
  }
}
