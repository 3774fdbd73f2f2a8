import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { forbidden } from '../../model/refusals.ts';
import type { ConsoleOperations, OpenSession } from '../../services/console/console-operations.ts';
import { cookieOf, SESSION_COOKIE } from '../limits/request-head.ts';
import { checkOrigin, siteOf } from './site.ts';

const READS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD']);

export interface ConsoleTerms {
  readonly people: ConsoleOperations;
  /** Public origin; undefined to allow only loopback addresses. */
  readonly url: string | undefined;
}

/**
 * Undefined without a session. Refuses a key beside the cookie, and a write without the exact
 * Origin and the session's X-CSRF-Token.
 */
export const sessionFinder =
  ({ people, url }: ConsoleTerms) =>
  async (request: IncomingMessage): Promise<OpenSession['person'] | undefined> => {
    const token = cookieOf(request, SESSION_COOKIE);
    if (token === undefined) return undefined;
    const site = siteOf(request, url);
    const session = await people.openSession(token);
    if (!session) return undefined;
    if (!READS.has(request.method)) {
      checkOrigin(request, site);
      const csrf = request.headers['x-csrf-token'];
      checkCsrf(session, typeof csrf === 'string' ? csrf : undefined);
    }
    return session.person;
  };

export const checkCsrf = ({ csrf }: OpenSession, given: string | undefined): void => {
  if (given === undefined || !timingSafeEqual(digest(given), digest(csrf)))
    throw forbidden('the CSRF token is missing or another session’s: load the page again');
};

const digest = (text: string): Buffer => Buffer.from(hash('sha256', text, 'hex'));
