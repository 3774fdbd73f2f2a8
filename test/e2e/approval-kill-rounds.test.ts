import { expect } from 'chai';
import { approvalKillRounds } from '../support/chaos/approval-kill-rounds.ts';

const ROUNDS = 4;

describe('approved claims and deletes under kill -9', function () {
  it('take effect once per approval, whenever the daemon is killed', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);
    const unanswered = await approvalKillRounds({ rounds: ROUNDS, seed });
    expect(unanswered, 'some were under way at a kill').to.be.greaterThan(0);
  });
});
