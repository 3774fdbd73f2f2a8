/**
 * What makes two POSTs under an Idempotency-Key the same request, as hashes that tell nothing of either: `key` of
 * principal, method, path and Idempotency-Key, `body` of the body's bytes. 22 characters of base64url each.
 */
export interface RequestMark {
  readonly key: string;
  readonly body: string;
}

/** One text, fit for a record. */
export const formatMark = ({ key, body }: RequestMark): string => `${key}.${body}`;

/** Undefined for what is no mark. */
export const parseMark = (text: string): RequestMark | undefined => {
  const [key, body, ...more] = text.split('.');
  return key && body && more.length === 0 ? { key, body } : undefined;
};
