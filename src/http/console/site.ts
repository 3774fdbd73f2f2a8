import type { IncomingMessage } from 'node:http';
import { forbidden, invalidArgument, Refusal } from '../../model/refusals.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * The one origin under which a request reaches the console: the configured one, or without it a
 * loopback address, so that no other site's name for this daemon counts. Refuses any other Host,
 * and a key: a session and a key never go together.
 */
export const siteOf = (request: IncomingMessage, url: string | undefined): string => {
  if (request.headers['service-api-key'] !== undefined)
    throw invalidArgument('SERVICE-API-KEY', 'must not be sent to the console');
  const host = request.headers.host ?? '';
  if (url !== undefined) {
    if (new URL(url).host !== host.toLowerCase())
      throw new Refusal('NOT_FOUND', `the console is at ${url}/console`);
    return url;
  }
  if (!LOOPBACK.test(host))
    throw new Refusal(
      'NOT_FOUND',
      'the console is on loopback addresses alone; console.url gives it another address',
    );
  return `${'encrypted' in request.socket ? 'https' : 'http'}://${host.toLowerCase()}`;
};

/** Refuses a write that a page of another origin sends, or one that does not say its origin. */
export const checkOrigin = ({ headers }: IncomingMessage, site: string): void => {
  if (headers.origin !== site)
    throw forbidden(`this is for pages of ${site} alone: the Origin header must be exactly that`);
};
