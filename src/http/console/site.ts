import type { IncomingMessage } from 'node:http';
import { forbidden, invalidArgument, Refusal } from '../../model/refusals.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * The configured URL, or a loopback address: no foreign host name for this daemon is accepted.
 * Refuses an API key too, since a session and a key never go together.
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
      'the console is only available on loopback addresses; set console.url to use another ' +
        'address',
    );
  return `${'encrypted' in request.socket ? 'https' : 'http'}://${host.toLowerCase()}`;
};

/** Refuses a write without an Origin, or from another one. */
export const checkOrigin = ({ headers }: IncomingMessage, site: string): void => {
  if (headers.origin !== site)
    throw forbidden(`only pages of ${site} may send this: the Origin header must be exactly that`);
};
