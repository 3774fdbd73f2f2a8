import type { IncomingMessage } from 'node:http';
import { invalidArgument } from '../../../model/refusals.ts';

/** The daemon itself serves files and processes at this port. */
export const SERVICES_PORT = 49_983;

export interface Address {
  /** Unvalidated; undefined if only the token identifies the sandbox. */
  readonly sandbox: string | undefined;
  readonly port: number;
}

/** First label of the host: `{port}-{id}`. */
const HOST = /^(\d{1,5})-([a-z0-9]{1,57})\./;

const PATHS = /^\/(?:files(?:[?]|$)|process\.Process\/|filesystem\.Filesystem\/)/;

/**
 * Whether a request is for a sandbox. Outside RPCs, SDKs before 2.16 identify it only by its token.
 */
export const isForSandbox = ({ url = '', headers }: IncomingMessage): boolean =>
  headers['e2b-sandbox-id'] !== undefined ||
  HOST.test(headers.host ?? '') ||
  PATHS.test(url) ||
  (headers['x-access-token'] !== undefined && /^\/health(?:[?]|$)/.test(url));

export const portNamedBy = ({ headers }: IncomingMessage): number =>
  Number(headers['e2b-sandbox-port'] ?? HOST.exec(headers.host ?? '')?.[1] ?? SERVICES_PORT);

/** Refuses two sandboxes or ports, and an invalid port. */
export const addressOf = ({ headers }: IncomingMessage): Address => {
  const [, hostPort, hostSandbox] = HOST.exec(headers.host ?? '') ?? [];
  const sandbox = textOf(headers['e2b-sandbox-id'], 'E2b-Sandbox-Id');
  const port = textOf(headers['e2b-sandbox-port'], 'E2b-Sandbox-Port');
  if (sandbox !== undefined && hostSandbox !== undefined && sandbox !== hostSandbox)
    throw invalidArgument('E2b-Sandbox-Id', 'must name the same sandbox as the host');
  if (port !== undefined && hostPort !== undefined && port !== hostPort)
    throw invalidArgument('E2b-Sandbox-Port', 'must name the same port as the host');
  const number = port ?? hostPort ?? String(SERVICES_PORT);
  if (!/^[0-9]{1,5}$/.test(number) || Number(number) < 1 || Number(number) > 65_535)
    throw invalidArgument('E2b-Sandbox-Port', 'must be a port from 1 to 65535');
  return { sandbox: sandbox ?? hostSandbox, port: Number(number) };
};

const textOf = (value: string | string[] | undefined, name: string): string | undefined => {
  if (value === undefined || (typeof value === 'string' && !value.includes(','))) return value;
  throw invalidArgument(name, 'is given twice');
};
