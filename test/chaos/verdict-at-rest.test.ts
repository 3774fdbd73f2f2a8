import { expect } from 'chai';
import { MadeUpRun } from '../support/chaos/a-run.ts';
import { violationsOf } from '../support/chaos/verdict.ts';

const promisesBroken = (run: MadeUpRun): readonly string[] => [
  ...new Set(violationsOf(run.evidence()).map(({ promise }) => promise)),
];
const ANN = 'team/team/ann';
const claim = { what: 'claim', pool: 'p' } as const;
const all = Array.from({ length: 16 }, (_, shard) => shard);

/** A pool of one that is full. */
const aRunWithAPool = (): MadeUpRun =>
  new MadeUpRun().pool('p', { replicas: 1 }).idle('a').at(1_000);

describe('the verdict on a calm run', () => {
  it('finds nothing wrong in a good run', () => {
    const usage = { [ANN]: { sandboxes: 0, pools: 1, replicas: 1 } };
    expect(violationsOf(aRunWithAPool().rest(90_000, { usage }).evidence())).to.deep.equal([]);
  });

  describe('each shard is led', () => {
    const but = (shard: number): readonly number[] => all.filter((one) => one !== shard);

    it('catches a shard without a leader', () => {
      expect(promisesBroken(aRunWithAPool().rest(10_500, { led: [but(3), []] }))).to.deep.equal([
        'each shard is led',
      ]);
    });
    it('catches a shard with two leaders', () => {
      expect(promisesBroken(aRunWithAPool().rest(10_500, { led: [all, [7]] }))).to.deep.equal([
        'each shard is led',
      ]);
    });
    it('allows 10 s of calm', () => {
      expect(promisesBroken(aRunWithAPool().rest(9_500, { led: [but(3), []] }))).to.deep.equal([]);
    });
    it('ignores replicas that did not answer', () => {
      expect(
        promisesBroken(aRunWithAPool().rest(60_000, { led: [but(3), undefined] })),
      ).to.deep.equal([]);
    });
    it('ignores times without an observation', () => {
      const { rests, ...rest } = aRunWithAPool()
        .rest(9_000, { led: [but(3)] })
        .evidence();
      const late = rests.map(({ looks, ...one }) => ({
        ...one,
        looks: [
          ...looks,
          ...looks.slice(-1).map((look) => ({
            ...look,
            asked: look.asked + 50_000,
            answered: look.answered + 50_000,
          })),
        ],
      }));
      expect(violationsOf({ ...rest, rests: late })).to.deep.equal([]);
    });
  });

  describe('each pool is full', () => {
    it('catches a pool that lacks an instance', () => {
      expect(
        promisesBroken(aRunWithAPool().pool('q', { replicas: 1 }).at(20_000).rest(10_500)),
      ).to.deep.equal(['each pool is full']);
    });
    it('does not count starting and unavailable instances as present', () => {
      expect(
        promisesBroken(
          aRunWithAPool().pool('q', { replicas: 1 }).born('b', 'q').at(20_000).rest(10_500),
        ),
      ).to.deep.equal(['each pool is full']);
      expect(
        promisesBroken(aRunWithAPool().node('node-0', false).at(20_000).rest(10_500)),
      ).to.deep.equal(['each pool is full']);
    });
    it('leaves pending starts to the scheduler and the node, as after a lost write in etcd', () => {
      const begun = (node?: string): MadeUpRun =>
        aRunWithAPool()
          .pool('q', { replicas: 1 })
          .born('b', 'q')
          .pod('b', {
            ownerUid: 'record-b',
            uid: 'pod-b',
            vitals: 'starting',
            terminating: false,
            ...(node === undefined ? {} : { node }),
          });
      for (const node of [undefined, 'node-0'])
        expect(promisesBroken(begun(node).at(20_000).rest(10_500))).to.deep.equal([]);
    });
    it('counts running sandboxes', () => {
      expect(promisesBroken(aRunWithAPool().claimed('a').at(20_000).rest(10_500))).to.deep.equal(
        [],
      );
    });
    it('allows 10 s of calm, and 10 s after a resize', () => {
      expect(
        promisesBroken(aRunWithAPool().pool('q', { replicas: 1 }).at(20_000).rest(9_500)),
      ).to.deep.equal([]);
      expect(promisesBroken(aRunWithAPool().pool('p', { replicas: 2 }).rest(15_000))).to.deep.equal(
        [],
      );
    });
    it('ignores pools that are being deleted or gone', () => {
      expect(
        promisesBroken(
          aRunWithAPool()
            .pool('p', { deleting: true })
            .podGone('a')
            .recordGone('a')
            .poolGone('p')
            .at(20_000)
            .rest(10_500),
        ),
      ).to.deep.equal([]);
    });
  });

  describe('nothing taken that no claim holds', () => {
    it('catches a deleted pool that stays without running sandboxes', () => {
      expect(
        promisesBroken(
          aRunWithAPool()
            .pool('p', { replicas: 0, deleting: true })
            .at(2_000)
            .rest(10_500)
            .poolGone('p'),
        ),
      ).to.deep.equal(['nothing taken that no claim holds']);
    });
    it('accepts a deleted pool while a sandbox of it runs', () => {
      expect(
        promisesBroken(
          aRunWithAPool()
            .claimed('a')
            .pool('p', { replicas: 0, deleting: true })
            .at(2_000)
            .rest(10_500),
        ),
      ).to.deep.equal([]);
    });
    it('catches a waiting claim while an instance is idle', () => {
      const run = aRunWithAPool();
      const waits = run
        .rest(20_000)
        .call(
          claim,
          { status: 503, errorCode: 'UNAVAILABLE' },
          { invoked: run.now - 10_000, completed: run.now - 9_000 },
        );
      expect(promisesBroken(waits)).to.deep.equal(['nothing taken that no claim holds']);
    });
    it('accepts a slow claim elsewhere', () => {
      expect(
        promisesBroken(
          aRunWithAPool()
            .call(claim, { status: 503, errorCode: 'UNAVAILABLE' }, { completed: 9_000 })
            .at(10_000),
        ),
      ).to.deep.equal([]);
    });
  });

  describe('quota equals the records', () => {
    const told = (sandboxes: number, pools = 1, replicas = 1) => ({
      usage: { [ANN]: { sandboxes, pools, replicas } },
    });

    it('catches usage above and below the records, of each kind', () => {
      for (const usage of [told(1), told(0, 2), told(0, 1, 9)]) {
        expect(promisesBroken(aRunWithAPool().rest(61_000, usage))).to.deep.equal([
          'quota equals the records',
        ]);
      }
      expect(promisesBroken(aRunWithAPool().claimed('a').rest(61_000, told(0)))).to.deep.equal([
        'quota equals the records',
      ]);
    });
    it('allows a minute', () => {
      expect(promisesBroken(aRunWithAPool().rest(59_000, told(1)))).to.deep.equal([]);
    });
    it('ignores unknown usage', () => {
      expect(promisesBroken(aRunWithAPool().rest(90_000, { usage: {} }))).to.deep.equal([]);
    });
    it('accepts the usage at any time of an observation', () => {
      const run = aRunWithAPool();
      const claimed = run.rest(61_000, told(1)).claimed('a').evidence();
      const before = claimed.sightings.filter(({ asked }) => asked < 900 || asked > 62_000);
      expect(violationsOf({ ...claimed, sightings: before })).to.deep.equal([]);
    });
  });
});
