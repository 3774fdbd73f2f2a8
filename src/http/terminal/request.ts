import type { IncomingMessage } from 'node:http';
import { invalidArgument, invalidToken, type Refusal } from '../../model/refusals.ts';
import type { OpenTerminalRequest } from '../../actors/sandbox/commands/sandbox-operations.ts';
import { badHandshake, foreignOrigin, unknownCluster, unknownPath } from './refusals.ts';

/** Text frames are JSON, and binary frames bytes. Without this protocol every frame is input. */
export const TERMINAL_PROTOCOL = 'sandpool.terminal.v1';
/** Changes nothing. */
const PROCESS_PROTOCOL = 'sandpool.process.v1';
const TOKEN_PROTOCOL = 'sandpool.token.';
export const MAX_SIDE = 1_000;

export interface TerminalRules {
  /** Absent if the operation checks the cluster. */
  readonly clusterId?: string;
  /** Besides the daemon's own; for example `https://console.example`. */
  readonly allowedOrigins?: readonly string[];
}

/** A refused request leaves its single-use token unused. */
export const readTerminalRequest = (
  request: IncomingMessage,
  rules: TerminalRules,
): { readonly ask: OpenTerminalRequest } | { readonly refusal: Refusal } => {
  const target = readTarget(request.url ?? '');
  if (!target) return { refusal: unknownPath() };
  if (rules.clusterId !== undefined && target.clusterId !== rules.clusterId)
    return { refusal: unknownCluster() };
  if (!originAllowed(request, rules.allowedOrigins ?? [])) return { refusal: foreignOrigin() };
  const handshake = handshakeProblem(request);
  if (handshake !== undefined) return { refusal: badHandshake(handshake) };
  const cols = readSide(target.query, 'cols', 80);
  if (cols === undefined)
    return {
      refusal: invalidArgument('cols', `must be a whole number from 1 to ${MAX_SIDE}, given once`),
    };
  const rows = readSide(target.query, 'rows', 24);
  if (rows === undefined)
    return {
      refusal: invalidArgument('rows', `must be a whole number from 1 to ${MAX_SIDE}, given once`),
    };
  const token = readToken(target.query, offeredProtocols(request));
  if (token === undefined) return { refusal: invalidToken() };
  const [prefix, ...rest] = target.sandboxId.split('.');
  if (rest.length > 0 && prefix !== target.clusterId) return { refusal: unknownCluster() };
  const sandboxId = rest.length > 0 ? rest.join('.') : target.sandboxId;
  return { ask: { clusterId: target.clusterId, sandboxId, token, cols, rows } };
};

/** Echoes a protocol that only carries the token, since browsers require an answer. */
export const chooseProtocol = (offered: Set<string>): string | false => {
  if (offered.has(TERMINAL_PROTOCOL)) return TERMINAL_PROTOCOL;
  if (offered.has(PROCESS_PROTOCOL)) return PROCESS_PROTOCOL;
  for (const protocol of offered) if (protocol.startsWith(TOKEN_PROTOCOL)) return protocol;
  return false;
};

const PATH = /^(?:\/v1)?\/ws\/clusters\/([^/]+)\/sandboxes\/([^/]+)\/terminal$/;

const readTarget = (
  url: string,
):
  | { readonly clusterId: string; readonly sandboxId: string; readonly query: URLSearchParams }
  | undefined => {
  const { path, query } = targetOf(url);
  const match = PATH.exec(path);
  const clusterId = decoded(match?.[1]);
  const sandboxId = decoded(match?.[2]);
  if (clusterId === undefined || sandboxId === undefined) return undefined;
  return { clusterId, sandboxId, query: new URLSearchParams(query) };
};

/** The query comes without its `?`. */
export const targetOf = (url: string): { readonly path: string; readonly query: string } => {
  const cut = url.indexOf('?');
  return cut < 0
    ? { path: url, query: '' }
    : { path: url.slice(0, cut), query: url.slice(cut + 1) };
};

const decoded = (segment: string | undefined): string | undefined => {
  if (segment === undefined || segment.length > 256) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
};

/** Browsers always send an Origin, so requests without it do not come from a page. */
export const originAllowed = (request: IncomingMessage, allowed: readonly string[]): boolean => {
  const { origin, host } = request.headers;
  if (origin === undefined) return true;
  if (allowed.includes(origin)) return true;
  if (host === undefined || !URL.canParse(origin)) return false;
  const from = new URL(origin);
  if (from.protocol !== 'http:' && from.protocol !== 'https:') return false;
  const asked = `${from.protocol}//${host}`;
  return URL.canParse(asked) && new URL(asked).host === from.host;
};

const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** Checked before the token is redeemed, so a malformed handshake does not consume it. */
export const handshakeProblem = (request: IncomingMessage): string | undefined => {
  if (request.method !== 'GET') return 'an upgrade must be a GET';
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') return 'Upgrade must be websocket';
  if (!KEY.test(request.headers['sec-websocket-key'] ?? ''))
    return 'Sec-WebSocket-Key is missing or malformed';
  if (request.headers['sec-websocket-version'] !== '13') return 'Sec-WebSocket-Version must be 13';
  return undefined;
};

const offeredProtocols = (request: IncomingMessage): readonly string[] =>
  (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());

const readSide = (query: URLSearchParams, name: string, otherwise: number): number | undefined => {
  const [given, ...more] = query.getAll(name);
  if (given === undefined) return otherwise;
  if (more.length > 0 || !/^[0-9]{1,9}$/.test(given)) return undefined;
  const side = Number(given);
  return side >= 1 && side <= MAX_SIDE ? side : undefined;
};

/** Does not validate the token. */
export const tokenIn = (request: IncomingMessage): string | undefined =>
  readToken(new URLSearchParams(targetOf(request.url ?? '').query), offeredProtocols(request));

const TOKEN = /^[\x21-\x7e]{1,512}$/;

/** Two different tokens count as no token. */
const readToken = (query: URLSearchParams, offered: readonly string[]): string | undefined => {
  const given = new Set([
    ...query.getAll('token'),
    ...offered
      .filter((protocol) => protocol.startsWith(TOKEN_PROTOCOL))
      .map((protocol) => protocol.slice(TOKEN_PROTOCOL.length)),
  ]);
  const [token] = given;
  return given.size === 1 && token !== undefined && TOKEN.test(token) ? token : undefined;
};
