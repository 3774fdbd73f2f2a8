import { SESSION_COOKIE } from '../limits/request-head.ts';

/** Marks a browser that logged in before. */
export const DEVICE_COOKIE = '__Host-sandpool-device';
/** Sealed state of a login at a provider. */
export const OPENID_COOKIE = '__Host-sandpool-openid';

const DEVICE_SECONDS = 180 * 24 * 3_600;
const OPENID_SECONDS = 600;

const STRICT = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** The daemon ends the session earlier. */
export const sessionCookie = (token: string): string => `${SESSION_COOKIE}=${token}; ${STRICT}`;

export const deviceCookie = (device: string): string =>
  `${DEVICE_COOKIE}=${device}; Max-Age=${DEVICE_SECONDS}; ${STRICT}`;

/** SameSite=Lax, since the provider redirects from another site. */
export const openIdCookie = (sealed: string): string =>
  `${OPENID_COOKIE}=${sealed}; Max-Age=${OPENID_SECONDS}; Path=/; Secure; HttpOnly; SameSite=Lax`;

export const noCookie = (name: string): string => `${name}=; Max-Age=0; ${STRICT}`;
