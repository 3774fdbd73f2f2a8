/**
 * Two POSTs under an Idempotency-Key with equal fingerprints are the same request. Hashes that
 * reveal nothing of their input: `key` of principal, method, path and Idempotency-Key, `body` of
 * the body's bytes. 22 characters of base64url each.
 */
export interface RequestFingerprint {
  readonly key: string;
  readonly body: string;
}

const NO_BODY = 'none';

/**
 * Fingerprint of a request without an Idempotency-Key, from a unique text: it distinguishes the
 * request's claim from all others.
 */
export const unkeyedFingerprint = (key: string): RequestFingerprint => ({ key, body: NO_BODY });

const OF_MANAGER = 'manager';

/**
 * Fingerprint of a request under a manager's key. The manager sends one body only, and repeats it
 * for some seconds.
 */
export const managersFingerprint = (key: string): RequestFingerprint => ({ key, body: OF_MANAGER });

/** Nobody uses it once the claimed sandbox has ended. */
export const isOfManager = ({ body }: RequestFingerprint): boolean => body === OF_MANAGER;

/** Whether a repeated request can have the same fingerprint. */
export const isKeyed = ({ body }: RequestFingerprint): boolean => body !== NO_BODY;

/**
 * Time in ms for which a request is known by its Idempotency-Key; after that it is a new request.
 */
export const REQUEST_KEPT_MS = 86_400_000;

/** Text form for a record. */
export const formatFingerprint = ({ key, body }: RequestFingerprint): string => `${key}.${body}`;

/** Undefined if the text is not a fingerprint. */
export const parseFingerprint = (text: string): RequestFingerprint | undefined => {
  const [key, body, ...more] = text.split('.');
  return key && body && more.length === 0 ? { key, body } : undefined;
};
