import { envKillRounds } from '../support/chaos/env-kill-rounds.ts';

const ROUNDS = 6;

describe('kill -9 of a daemon with self-sizing envs under load', () => {
  it('loses no claim and no change, keeps bounds and counts, and continues sizing', async function () {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);
    await envKillRounds({ rounds: ROUNDS, seed });
  });
});
