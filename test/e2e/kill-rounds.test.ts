import { expect } from 'chai';
import { killRounds } from '../support/chaos/kill-rounds.ts';

describe('kill -9 of daemon, spawner or both under load', () => {
  it('loses nothing acknowledged, hands out nothing twice, leaves no orphan and no running sandbox dead', async function () {
    const seed = Math.floor(Math.random() * 2 ** 32);
    console.log(`      seed ${seed}`);
    const damage = await killRounds({ rounds: 10, seed });
    expect(damage).to.deep.equal({ lost: 0, ownedTwice: 0, orphans: 0, dead: 0, details: [] });
  });
});
