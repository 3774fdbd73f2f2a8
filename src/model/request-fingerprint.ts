/**
 * Makes two POSTs under an Idempotency-Key the same request, as hashes that tell nothing of either:
 * `key` of principal, method, path and Idempotency-Key, `body` of the body's bytes. 22 characters
 * of base64url each.
 */
export interface RequestFingerprint {
  readonly key: string;
  readonly body: string;
}

const NO_BODY = 'none';

/**
 * Fingerprint of a request without an Idempotency-Key, by a text that no other has: it tells that
 * request's claim from every other.
 */
export const unkeyedFingerprint = (key: string): RequestFingerprint => ({ key, body: NO_BODY });

const OF_MANAGER = 'manager';

/**
 * Fingerprint of a request under a key that a manager made, which is sent with one body only and
 * repeated for some seconds.
 */
export const managersFingerprint = (key: string): RequestFingerprint => ({ key, body: OF_MANAGER });

/** Nobody names it any more once what it claimed is over. */
export const isOfManager = ({ body }: RequestFingerprint): boolean => body === OF_MANAGER;

/** A repetition can name it. */
export const isKeyed = ({ body }: RequestFingerprint): boolean => body !== NO_BODY;

/** For how long a request is known by its Idempotency-Key; after that it is a new one. */
export const REQUEST_KEPT_MS = 86_400_000;

/** One text, fit for a record. */
export const formatFingerprint = ({ key, body }: RequestFingerprint): string => `${key}.${body}`;

/** Undefined for what is no mark. */
export const parseFingerprint = (text: string): RequestFingerprint | undefined => {
  const [key, body, ...more] = text.split('.');
  return key && body && more.length === 0 ? { key, body } : undefined;
};
