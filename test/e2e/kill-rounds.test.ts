import { expect } from 'chai';
import { killRounds } from '../support/chaos/kill-rounds.ts';

describe('a daemon or spawner under load and kill -9', () => {
  it('loses nothing acknowledged, hands out nothing twice, and leaves no orphans or dead sandboxes', async function () {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);
    const damage = await killRounds({ rounds: 10, seed });
    expect(damage).to.deep.equal({ lost: 0, ownedTwice: 0, orphans: 0, dead: 0, details: [] });
  });
});
