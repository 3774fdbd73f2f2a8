import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { invalidArgument, Refusal } from '../../model/refusals.ts';
import { tooManyBadKeys } from '../../model/limit-refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { Operations } from '../../services/operations.ts';
import { hasSessionCookie } from './request-head.ts';
import { addressGroup } from './address-group.ts';
import { BadKeys } from './bad-keys.ts';
import { clientAddresses, type ClientAddresses } from './client-address.ts';

export interface ClientsDeps {
  readonly operations: Pick<
    Operations,
    'authenticate' | 'authenticateAfresh' | 'followKey' | 'countRejectedKey'
  >;
  readonly clock: Clock;
  readonly log: Log;
  /** Addresses and CIDR ranges whose forwarding headers count. */
  readonly trustedProxies?: readonly string[];
  /** There is a console: a key beside the cookie of its sessions is refused. */
  readonly hasConsole?: boolean;
}

/** Who asks: from where, and by which key. */
export interface Clients extends ClientAddresses {
  /**
   * The caller behind the request's API key. Refuses a rejected one with INVALID_API_KEY, and past
   * 20 of them a minute from one address with RATE_LIMITED. A good key goes on whatever else came
   * from its address. At once, unless the key is not known here. Where there is a console, a key
   * beside the cookie of a session is refused with INVALID_ARGUMENT.
   */
  readonly authenticate: (request: IncomingMessage) => Caller | Promise<Caller>;
  /**
   * Looks up who sends a request that brings something else than a key, with the group of addresses
   * that it is from. What the look rejects with INVALID_TOKEN counts as a rejected key does, and
   * nothing is looked up for an address that must wait.
   */
  readonly lookUp: <T>(request: IncomingMessage, look: LookUp<T>) => Promise<T>;
  /** Returns the caller behind the request's key, where the key is known here. Counts nothing. */
  readonly knownCaller: (request: IncomingMessage) => Caller | undefined;
  /** Returns the tenant of the same. */
  readonly tenantOf: (request: IncomingMessage) => string | undefined;
  /**
   * When the caller's key ends, in ms, where that is within two weeks and the key was made to last.
   */
  readonly keyEndOf: (caller: Caller) => number | undefined;
  /**
   * For what goes on: calls `ended` once the caller's key is revoked or has expired. Answers the
   * way to end it.
   */
  readonly followKey: (caller: Caller, ended: () => void) => () => void;
  /** Says whether a request came over a link to a manager; absent: there are none. */
  readonly isLinked?: (request: IncomingMessage) => boolean;
}

export type LookUp<T> = (addressGroup: string) => Promise<T>;

export const clientsOf = ({
  operations,
  clock,
  log,
  trustedProxies = [],
  hasConsole = false,
}: ClientsDeps): Clients => {
  const addresses = clientAddresses(trustedProxies);
  const badKeys = new BadKeys(clock, operations);
  const tooMany = (address: string, waitSeconds: number): Refusal => {
    log.debug({ address }, 'too many rejected keys');
    return tooManyBadKeys(waitSeconds);
  };
  const lookUp: Clients['lookUp'] = async (request, look) => {
    const address = addresses.of(request);
    const waitSeconds = badKeys.waitOf(address);
    if (waitSeconds > 0) throw tooMany(address, waitSeconds);
    try {
      return await look(addressGroup(address));
    } catch (error) {
      if (!isRejected(error)) throw error;
      const retryAfter = await badKeys.note(address);
      throw retryAfter === 0 ? error : tooMany(address, retryAfter);
    }
  };
  const knownCaller: Clients['knownCaller'] = (request) => {
    try {
      return operations.authenticate(keyOf(request));
    } catch (error) {
      if (error instanceof Refusal) return undefined;
      throw error;
    }
  };
  return {
    ...addresses,
    lookUp,
    knownCaller,
    keyEndOf: ({ keyEndsAt }) =>
      keyEndsAt !== undefined && keyEndsAt - clock.now() < TOLD_BEFORE_MS ? keyEndsAt : undefined,
    followKey: ({ keyId }, ended) => operations.followKey(keyId, ended),
    tenantOf: (request) => {
      const caller = knownCaller(request);
      return caller && tenantKey(caller);
    },
    authenticate: (request) => {
      if (hasConsole) refuseKeyBesideSession(request);
      try {
        return operations.authenticate(keyOf(request));
      } catch (error) {
        if (!isRejected(error)) throw error;
        // It is not good as far as is known here.
        return lookUp(request, () => operations.authenticateAfresh(keyOf(request)));
      }
    },
  };
};

/** Refuses a key and a session together: it would be unclear who asks. */
export const refuseKeyBesideSession = (request: IncomingMessage): void => {
  if (request.headers['service-api-key'] !== undefined && hasSessionCookie(request))
    throw invalidArgument('SERVICE-API-KEY', 'must not come with the cookie of a session');
};

const TOLD_BEFORE_MS = 14 * 24 * 60 * 60_000;

const isRejected = (error: unknown): boolean =>
  error instanceof Refusal && (error.code === 'INVALID_API_KEY' || error.code === 'INVALID_TOKEN');

const keyOf = ({ headers }: IncomingMessage): string | undefined => {
  const key = headers['service-api-key'];
  return typeof key === 'string' ? key : undefined;
};
