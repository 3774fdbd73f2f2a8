import type { IncomingMessage, ServerResponse } from 'node:http';
import { linkedAddressOf } from './over-links.ts';
import { isOpen } from './admission.ts';
import { portNamedBy } from './address.ts';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const KEPT_SECONDS = '600';
const NAMES = /^[\w\-, ]{1,1024}$/;

/** A CORS preflight to Sandpool itself. */
export const isPreflight = (request: IncomingMessage): boolean =>
  request.method === 'OPTIONS' &&
  request.headers['access-control-request-method'] !== undefined &&
  isOurs(request);

/**
 * For pages of all origins. Safe, since each request carries a key or token and cookies are
 * ignored. Sandboxes' programs decide for their own ports.
 */
export const letPagesRead = (request: IncomingMessage, response: ServerResponse): void => {
  if (request.headers.origin === undefined || !isOurs(request)) return;
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Expose-Headers', '*');
};

export const answerPreflight = (request: IncomingMessage, response: ServerResponse): void => {
  const asked = request.headers['access-control-request-headers'] ?? '';
  response.writeHead(204, {
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers': NAMES.test(asked) ? asked : '*',
    'Access-Control-Max-Age': KEPT_SECONDS,
  });
  response.end();
};

/** The manager has already answered this. */
const isOurs = (request: IncomingMessage): boolean =>
  linkedAddressOf(request) === undefined && !isOpen(portNamedBy(request));
