import type { Clock } from '../../contracts/clock.ts';
import {
  DEAD_LETTER_MS,
  MAX_DEAD_LETTERS,
  type DeadLetters,
  type KeptDeadLetter,
} from '../../contracts/coordination/dead-letters.ts';
import type { Database } from './database.ts';

export const sqliteDeadLetters = (database: Database, clock: Clock): DeadLetters => ({
  keep: async (receiver, letter) => {
    const at = clock.now();
    await database.run('deadLetters.keep', receiver, letter.id, at, JSON.stringify(letter));
    await database.run('deadLetters.trim', receiver, at - DEAD_LETTER_MS, MAX_DEAD_LETTERS);
  },
  of: async (receiver) =>
    (
      await database.run('deadLetters.of', receiver, clock.now() - DEAD_LETTER_MS, MAX_DEAD_LETTERS)
    ).map(([body]) => JSON.parse(String(body)) as KeptDeadLetter),
  forget: async (receiver, id) => {
    await database.run('deadLetters.forget', receiver, id);
  },
});
