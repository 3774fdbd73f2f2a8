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
  readonly trustedProxies?: readonly string[];
  /** Refuses a request with both a key and a session cookie. */
  readonly hasConsole?: boolean;
}

/** Identifies clients by address and API key. */
export interface Clients extends ClientAddresses {
  /**
   * Refuses a bad key with INVALID_API_KEY, and with RATE_LIMITED after 20 a minute from one
   * address. A good key always works. Synchronous if this replica knows the key.
   */
  readonly authenticate: (request: IncomingMessage) => Caller | Promise<Caller>;
  /**
   * For other means than keys. INVALID_TOKEN counts as a bad key; a blocked address gets no lookup.
   */
  readonly lookUp: <T>(request: IncomingMessage, look: LookUp<T>) => Promise<T>;
  /** Undefined unless this replica knows the key. Counts nothing. */
  readonly knownCaller: (request: IncomingMessage) => Caller | undefined;
  readonly tenantOf: (request: IncomingMessage) => string | undefined;
  /** In ms, if within two weeks. Undefined for short-lived keys. */
  readonly keyEndOf: (caller: Caller) => number | undefined;
  /** Reports that the key was revoked or expired. Returns a function that stops watching. */
  readonly followKey: (caller: Caller, ended: () => void) => () => void;
  /** A manager sent the request over a link. */
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
    log.debug({ address }, 'too-many-rejected-keys');
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
        // Another replica may have just created the key.
        return lookUp(request, () => operations.authenticateAfresh(keyOf(request)));
      }
    },
  };
};

/** With both, the caller would be ambiguous. */
export const refuseKeyBesideSession = (request: IncomingMessage): void => {
  if (request.headers['service-api-key'] !== undefined && hasSessionCookie(request))
    throw invalidArgument('SERVICE-API-KEY', 'must not be sent with the cookie of a session');
};

const TOLD_BEFORE_MS = 14 * 24 * 60 * 60_000;

const isRejected = (error: unknown): boolean =>
  error instanceof Refusal && (error.code === 'INVALID_API_KEY' || error.code === 'INVALID_TOKEN');

const keyOf = ({ headers }: IncomingMessage): string | undefined => {
  const key = headers['service-api-key'];
  return typeof key === 'string' ? key : undefined;
};
