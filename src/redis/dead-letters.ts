import {
  DEAD_LETTER_MS,
  MAX_DEAD_LETTERS,
  type DeadLetters,
  type KeptDeadLetter,
} from '../contracts/coordination/dead-letters.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';

export const redisDeadLetters = ({
  link,
  keys,
}: {
  readonly link: RedisLink;
  readonly keys: Keys;
}): DeadLetters => {
  const names = (receiver: string): readonly string[] => [
    keys.deadLetters(receiver),
    keys.deadLetterTimes(receiver),
  ];
  return {
    keep: async (receiver, letter) => {
      const text = JSON.stringify(letter);
      await link.run('keep_dead_letter', names(receiver), [
        letter.id,
        text,
        MAX_DEAD_LETTERS,
        DEAD_LETTER_MS,
      ]);
    },
    of: async (receiver) =>
      (await link.run('dead_letters', names(receiver), [DEAD_LETTER_MS]))
        .slice(1)
        .map((text) => JSON.parse(String(text)) as KeptDeadLetter),
    forget: async (receiver, id) => {
      await link.run('forget_dead_letter', names(receiver), [id]);
    },
  };
};
