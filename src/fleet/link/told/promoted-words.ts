import { z } from 'zod';
import {
  MOST_PROMOTED,
  type PromotedChange,
  type PromotedKey,
} from '../../../contracts/fleet/promoted-keys.ts';
import { moment, wordFields, type ToldWords } from './told-records.ts';

const label = z.string().min(1).max(63);

const Keys = z.object({
  ...wordFields,
  keys: z
    .array(
      z.object({
        keyId: z.string().regex(/^[0-9A-Za-z]{12,64}$/),
        shortName: label,
        team: label,
        user: label,
        role: z.enum(['user', 'admin']),
        description: z.string().max(4_096),
        verifier: z.string().regex(/^[0-9a-f]{64}$/),
        gated: z.literal(true).optional(),
        makers: z.array(z.string().max(63)).max(64).optional(),
        issuedAt: moment,
        expiresAt: moment,
      }),
    )
    .max(MOST_PROMOTED),
  gone: z.array(z.string().max(64)).max(MOST_PROMOTED),
});

/** Says which keys are promoted: all of them before the link carries requests. */
export const KEY_WORDS: ToldWords<PromotedKey, PromotedChange> = {
  path: '/keys',
  title: 'sandpool keys',
  atOnce: 100,
  withinMs: 5_000,
  most: MOST_PROMOTED,
  idOf: ({ keyId }) => keyId,
  put: (keys) => ({ keys }),
  parse: (word) => {
    const { number, whole, keys, gone, now } = Keys.parse(word);
    return { number, whole, ids: keys.map(({ keyId }) => keyId), change: { keys, gone, now } };
  },
};
