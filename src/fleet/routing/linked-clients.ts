import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { CLAIM_KEY_HEADER, IDENTITY_HEADER } from '../../model/fleet/identity-header.ts';
import { invalidApiKey, Refusal } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { Clients } from '../../http/limits/clients.ts';

/** Checks the identity that a manager signed for one request; a Refusal: it came too late. */
export type CheckIdentity = (
  identity: string,
  request: {
    readonly method: string;
    readonly target: string;
    readonly idempotencyKey: string | undefined;
  },
) => Caller | Refusal | undefined;

export interface LinkedClientsDeps {
  readonly clients: Clients;
  /** The check of the link that a connection came over; undefined of any other connection. */
  readonly checkOf: (connection: Duplex) => CheckIdentity | undefined;
  readonly remember: (caller: Caller) => void;
}

/**
 * Knows who asks over a link of a worker: by the manager's word alone, and by no key. Whoever comes
 * otherwise needs a key as before, whatever identity the request names.
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
    // the manager ends what it passes on with the key of who asked
    followKey: (caller, ended) =>
      linked.has(caller) ? () => undefined : clients.followKey(caller, ended),
  };
};

const identified = (request: IncomingMessage, check: CheckIdentity): ReturnType<CheckIdentity> => {
  const identity = request.headers[IDENTITY_HEADER];
  const key = request.headers['idempotency-key'] ?? request.headers[CLAIM_KEY_HEADER];
  if (typeof identity !== 'string') return undefined;
  return check(identity, {
    method: request.method ?? '',
    target: request.url ?? '',
    idempotencyKey: typeof key === 'string' ? key : undefined,
  });
};
