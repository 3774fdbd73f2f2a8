/**
 * POSTs under an Idempotency-Key with equal fingerprints are the same request. Hashes in 22
 * characters of base64url: `key` of principal, method, path and Idempotency-Key, `body` of the
 * body's bytes.
 */
export interface RequestFingerprint {
  readonly key: string;
  readonly body: string;
}

const NO_BODY = 'none';

/** Distinguishes the claim of a request without an Idempotency-Key from all others. */
export const unkeyedFingerprint = (key: string): RequestFingerprint => ({ key, body: NO_BODY });

const OF_MANAGER = 'manager';

export const managersFingerprint = (key: string): RequestFingerprint => ({ key, body: OF_MANAGER });

/** Nobody uses it once the claimed sandbox has ended. */
export const isOfManager = ({ body }: RequestFingerprint): boolean => body === OF_MANAGER;

export const isKeyed = ({ body }: RequestFingerprint): boolean => body !== NO_BODY;

/** After this time in ms, the same Idempotency-Key makes a new request. */
export const REQUEST_KEPT_MS = 86_400_000;

export const formatFingerprint = ({ key, body }: RequestFingerprint): string => `${key}.${body}`;

export const parseFingerprint = (text: string): RequestFingerprint | undefined => {
  const [key, body, ...more] = text.split('.');
  return key && body && more.length === 0 ? { key, body } : undefined;
};
