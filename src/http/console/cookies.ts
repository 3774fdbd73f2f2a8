import { SESSION_COOKIE } from '../limits/request-head.ts';

/** Shows that this browser logged in before. */
export const DEVICE_COOKIE = '__Host-sandpool-device';
/** Holds what a login at a provider began with. */
export const OPENID_COOKIE = '__Host-sandpool-openid';

const DEVICE_SECONDS = 180 * 24 * 3_600;
const OPENID_SECONDS = 600;

const STRICT = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** Until the browser closes; the daemon ends it earlier. */
export const sessionCookie = (token: string): string => `${SESSION_COOKIE}=${token}; ${STRICT}`;

export const deviceCookie = (device: string): string =>
  `${DEVICE_COOKIE}=${device}; Max-Age=${DEVICE_SECONDS}; ${STRICT}`;

/** Lax: the provider sends the browser back from another site. */
export const openIdCookie = (sealed: string): string =>
  `${OPENID_COOKIE}=${sealed}; Max-Age=${OPENID_SECONDS}; Path=/; Secure; HttpOnly; SameSite=Lax`;

export const noCookie = (name: string): string => `${name}=; Max-Age=0; ${STRICT}`;
