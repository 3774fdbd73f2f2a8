import type { IncomingMessage } from 'node:http';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import { Refusal, tooManyBadKeys } from '../model/refusals.ts';
import type { Caller } from '../model/tenant.ts';
import type { Operations } from '../operations/operations.ts';
import { BadKeys } from './bad-keys.ts';
import type { ClientAddresses } from './client-address.ts';

export interface CredentialsDeps {
  readonly operations: Pick<Operations, 'authenticate'>;
  readonly addresses: ClientAddresses;
  readonly clock: Clock;
  readonly log: Log;
}

/** The caller of a request, by its API key. */
export type Authenticate = (request: IncomingMessage) => Caller;

/**
 * Refuses a rejected key with INVALID_API_KEY, and past 20 of them a minute from one address with RATE_LIMITED. A good key
 * goes on whatever else came from its address.
 */
export const authenticateRequests = ({ operations, addresses, clock, log }: CredentialsDeps): Authenticate => {
  const badKeys = new BadKeys(clock);
  return (request) => {
    const key = request.headers['service-api-key'];
    try {
      return operations.authenticate(typeof key === 'string' ? key : undefined);
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'INVALID_API_KEY') throw error;
      const address = addresses.of(request);
      const retryAfter = badKeys.note(address);
      if (retryAfter === 0) throw error;
      log.debug({ address }, 'too many rejected keys');
      throw tooManyBadKeys(retryAfter);
    }
  };
};
