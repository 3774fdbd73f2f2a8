import { expect } from 'chai';
import { START_HELD_MS } from '../../src/contracts/coordination/cluster-starts.ts';
import type { CoordinationUnderTest } from './coordination.ts';

/** What ClusterStarts promises: a part of the suite of Coordination. */
export const clusterStartsTests = (under: () => CoordinationUnderTest): void => {
  describe('starts of worker clusters', () => {
    const hold = async (start: string, clusterId = 'w1') =>
      (await under().coordination.holdStarts([{ clusterId, start }]))[0];
    const release = (start: string) =>
      under().coordination.releaseStart({ clusterId: 'w1', start });

    it('are unique per cluster, and a conflict is reported', async () => {
      expect(await hold('a')).to.deep.equal({ start: 'a', isWanted: false });
      expect(await hold('a')).to.deep.equal({ start: 'a', isWanted: false });
      expect(await hold('b')).to.deep.equal({ start: 'a', isWanted: true });
      expect(await hold('a')).to.deep.equal({ start: 'a', isWanted: true });
      expect(await hold('b', 'w2')).to.deep.equal({ start: 'b', isWanted: false });
      expect(
        await under().coordination.holdStarts([
          { clusterId: 'w2', start: 'b' },
          { clusterId: 'w1', start: 'b' },
        ]),
      ).to.deep.equal([
        { start: 'b', isWanted: false },
        { start: 'a', isWanted: true },
      ]);
    });

    it('can be registered again after a release by the linked start only', async () => {
      await hold('a');
      await release('b');
      expect((await hold('b'))?.start).to.equal('a');
      await release('a');
      expect(await hold('b')).to.deep.equal({ start: 'b', isWanted: false });
      expect((await hold('a'))?.start).to.equal('b');
    });

    it('can be registered again once the others no longer renew them', async () => {
      await hold('a');
      await under().advance(START_HELD_MS / 2 + 100);
      await hold('a');
      await under().advance(START_HELD_MS / 2 + 100);
      expect((await hold('b'))?.start).to.equal('a');
      await under().advance(START_HELD_MS);
      expect(await hold('b')).to.deep.equal({ start: 'b', isWanted: false });
    });
  });
};
