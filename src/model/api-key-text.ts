import { crc32 } from 'node:zlib';

/**
 * `spk_<id>_<secret><checksum>`, all base62. The checksum (CRC-32 of the preceding text) detects a
 * mistyped or truncated key without any lookup.
 */
export interface ApiKeyText {
  readonly keyId: string;
  readonly secret: string;
}

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const KEY_ID_LENGTH = 16;
/** 256 bits. */
const KEY_SECRET_LENGTH = 43;

const CHECKSUM_LENGTH = 6;
const SHAPE = /^spk_[0-9A-Za-z]{12,32}_[0-9A-Za-z]{38,70}$/;

/** `randomBytes` must be unpredictable. */
export const newApiKeyText = (randomBytes: (count: number) => Uint8Array): ApiKeyText => ({
  keyId: randomBase62(KEY_ID_LENGTH, randomBytes),
  secret: randomBase62(KEY_SECRET_LENGTH, randomBytes),
});

export const formatApiKey = ({ keyId, secret }: ApiKeyText): string => {
  const body = `spk_${keyId}_${secret}`;
  return body + checksumOf(body);
};

/** Undefined if the text has another shape or a wrong checksum. */
export const parseApiKey = (text: string): ApiKeyText | undefined => {
  if (!SHAPE.test(text)) return undefined;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  if (checksumOf(body) !== text.slice(-CHECKSUM_LENGTH)) return undefined;
  const separator = body.indexOf('_', 4);
  return { keyId: body.slice(4, separator), secret: body.slice(separator + 1) };
};

const COMPATIBLE = /^e2b_((?:[0-9a-f]{2}){1,256})$/;

/** Some versions of E2B's SDKs check the form of a key. */
export const toCompatibleForm = (key: string): string =>
  `e2b_${Buffer.from(key, 'latin1').toString('hex')}`;

export const fromCompatibleForm = (text: string): string => {
  const [, digits = ''] = COMPATIBLE.exec(text) ?? [];
  const key = Buffer.from(digits, 'hex').toString('latin1');
  return SHAPE.test(key) ? key : text;
};

/** Removes the secrets, not the ids. */
export const blankApiKeys = (text: string): string =>
  text.includes('_')
    ? text.replace(KEY_IN_TEXT, '$1[secret]').replace(COMPATIBLE_IN_TEXT, '$1[secret]')
    : text;

const KEY_IN_TEXT = /(spk_[A-Za-z0-9]+_)[A-Za-z0-9_-]+/g;
const COMPATIBLE_IN_TEXT = /(e2b_)[0-9a-f]{16,}/g;

const checksumOf = (body: string): string => {
  let rest = crc32(body);
  let text = '';
  for (let position = 0; position < CHECKSUM_LENGTH; position += 1) {
    text = BASE62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
};

/** Uniform over all 62 characters. */
const randomBase62 = (length: number, randomBytes: (count: number) => Uint8Array): string => {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
};
