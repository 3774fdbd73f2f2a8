import type { Passwords } from '../../contracts/operators.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import { unavailable } from '../../model/refusals.ts';

/** Each hash takes 19 MiB, and a thread for about 50 ms. */
const MOST = 2;
const MOST_WAITING = 64;

/** From OWASP's Password Storage Cheat Sheet. */
const TERMS = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** argon2id. Loads the library with the first hash. */
export const argon2Passwords = (): Passwords => {
  const slots = new FairSlots({
    most: () => MOST,
    mostOfTenant: (most) => most,
    mostWaiting: MOST_WAITING,
    mostWaitingOfTenant: MOST_WAITING,
  });
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const full = () => unavailable('too many logins are waiting');
    const release = await slots.take('passwords', { full });
    try {
      return await work();
    } finally {
      release();
    }
  };
  const library = () => import('@node-rs/argon2');
  let nobodys: Promise<string> | undefined;
  return {
    hash: (password) =>
      inTurn(async () => (await library()).hash(password.normalize('NFC'), TERMS)),
    verify: (password, hash) =>
      inTurn(async () => {
        const { hash: make, verify } = await library();
        nobodys ??= make('nobody has this password', TERMS);
        const compared = hash ?? (await nobodys);
        const isRight = await verify(compared, password.normalize('NFC')).catch(() => false);
        return isRight && hash !== undefined;
      }),
  };
};
