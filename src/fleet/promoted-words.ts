import { z } from 'zod';
import { MOST_PROMOTED } from '../contracts/fleet/promoted-keys.ts';

/** Keys that one word holds. */
export const KEYS_OF_WORD = 100;
/** The most bytes of such a word. */
export const MOST_KEYS_WORD = 1_048_576;

const label = z.string().min(1).max(63);

/**
 * Says, by `POST /keys`, which keys are promoted: all of them before the link carries requests, in
 * several words where they are many, and each change from then on. The manager signs the text of a
 * word together with what both said at the beginning of the link; its number on the link goes up by
 * one each time. So none can be said again, on this link or another.
 */
export const KeysWord = z.object({ text: z.string().max(MOST_KEYS_WORD), signature: z.string() });

export const Keys = z.object({
  number: z.int(),
  /** The manager's time, in ms. */
  now: z.number(),
  /** `end`: these, and those of the words before this one, are all. Absent: a change. */
  whole: z.enum(['more', 'end']).optional(),
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
        issuedAt: z.number(),
        expiresAt: z.number(),
      }),
    )
    .max(MOST_PROMOTED),
  gone: z.array(z.string().max(64)).max(MOST_PROMOTED),
});
export type Keys = z.infer<typeof Keys>;

/** The answer to a word: it holds at the worker. */
export const KeysTaken = z.object({ number: z.int() });

/** Returns what the manager signs. `transcript`: what it signed at the beginning of the link. */
export const signedKeys = (transcript: string, text: string): string =>
  JSON.stringify(['sandpool keys', transcript, text]);
