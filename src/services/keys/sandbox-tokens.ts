import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isInstanceId } from '../../model/identifiers.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { callerOf } from './authenticate.ts';
import type { KeyOperations } from './key-operations.ts';

export interface SandboxTokensDeps {
  readonly apiKeys: Pick<ApiKeyMirror, 'good'>;
  readonly pepper: Buffer;
}

const FORM = /^sbt_([0-9a-f]{32})([0-9a-z]{1,25})?_([0-9A-Za-z]{12,32})_([ap])([0-9a-f]{40})$/;
const MAC_DIGITS = 40;

const LETTERS = { access: 'a', traffic: 'p' } as const;

/**
 * A seal, under a key derived from the pepper, over the sandbox, the requesting API key and the
 * token's kind. Nothing is stored. It is worth as much as its API key, in this sandbox only.
 */
export const sandboxTokens = ({
  apiKeys,
  pepper,
}: SandboxTokensDeps): Pick<KeyOperations, 'sandboxTokens' | 'bearerOf'> => {
  const sealing = Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool sandbox token', 32));
  const sealed = (body: string): string =>
    body + createHmac('sha256', sealing).update(body).digest('hex').slice(0, MAC_DIGITS);
  const tokenOf = (sandbox: string, keyId: string, letter: string): string =>
    sealed(`sbt_${sandbox}_${keyId}_${letter}`);
  return {
    sandboxTokens: ({ keyId }, sandboxId, clusterId = '') => {
      const sandbox = sandboxId.replaceAll('-', '') + clusterId;
      return {
        access: tokenOf(sandbox, keyId, LETTERS.access),
        traffic: tokenOf(sandbox, keyId, LETTERS.traffic),
      };
    },
    bearerOf: async (token) => {
      const [, digits = '', clusterId, keyId = '', letter] = FORM.exec(token) ?? [];
      const expected = Buffer.from(sealed(token.slice(0, -MAC_DIGITS)));
      const given = Buffer.from(token);
      if (letter === undefined || given.length !== expected.length) return undefined;
      if (!timingSafeEqual(given, expected)) return undefined;
      const sandboxId = digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
      const key = isInstanceId(sandboxId) ? await apiKeys.good(keyId) : undefined;
      return (
        key && {
          sandboxId,
          clusterId,
          caller: callerOf(key),
          goodFor: letter === LETTERS.access ? 'access' : 'traffic',
        }
      );
    },
  };
};
