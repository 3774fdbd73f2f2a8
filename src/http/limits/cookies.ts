import type { IncomingMessage } from 'node:http';

/** Cookies of the console; browsers take `__Host-` ones from secure origins and loopback alone. */
export const SESSION_COOKIE = '__Host-sandpool-session';
/** Shows that this browser logged in before. */
export const DEVICE_COOKIE = '__Host-sandpool-device';
/** Holds what a login at a provider began with. */
export const OPENID_COOKIE = '__Host-sandpool-openid';

const DEVICE_SECONDS = 180 * 24 * 3_600;
const OPENID_SECONDS = 600;

/**
 * The value of a cookie; undefined where there is none. One that is given twice counts as none:
 * another host may have set one of them.
 */
export const cookieOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
};

/** Whether the cookie of a session comes with it, good or not. */
export const hasSessionCookie = ({ headers }: IncomingMessage): boolean =>
  headers.cookie?.includes(`${SESSION_COOKIE}=`) === true;

const STRICT = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** Until the browser closes; the daemon ends it earlier. */
export const sessionCookie = (token: string): string => `${SESSION_COOKIE}=${token}; ${STRICT}`;

export const deviceCookie = (device: string): string =>
  `${DEVICE_COOKIE}=${device}; Max-Age=${DEVICE_SECONDS}; ${STRICT}`;

/** Lax: the provider sends the browser back from another site. */
export const openIdCookie = (sealed: string): string =>
  `${OPENID_COOKIE}=${sealed}; Max-Age=${OPENID_SECONDS}; Path=/; Secure; HttpOnly; SameSite=Lax`;

export const noCookie = (name: string): string => `${name}=; Max-Age=0; ${STRICT}`;
