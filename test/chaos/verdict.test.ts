import { expect } from 'chai';
import { MadeUpRun } from '../support/chaos/a-run.ts';
import { violationsOf } from '../support/chaos/verdict.ts';

const promisesBroken = (run: MadeUpRun): readonly string[] => [
  ...new Set(violationsOf(run.evidence()).map(({ promise }) => promise)),
];
const claim = { what: 'claim', pool: 'p' } as const;
const EXHAUSTED = { status: 429, errorCode: 'POOL_EXHAUSTED' } as const;
const BOB = 'team/team/bob';

/** One sandbox of ann's, claimed at 100 and acknowledged at 110. */
const aClaim = (): MadeUpRun =>
  new MadeUpRun()
    .pool('p')
    .idle('a')
    .at(95)
    .call(claim, { status: 201, id: 'a' }, { completed: 110 })
    .at(100)
    .claimed('a');
/** The same, deleted at 200 and acknowledged at 210. */
const aDelete = (): MadeUpRun =>
  aClaim()
    .at(195)
    .call({ what: 'delete', id: 'a' }, { status: 200 }, { completed: 210 })
    .at(200)
    .podGone('a')
    .at(220)
    .recordGone('a');

describe('the verdict on a run', () => {
  it('finds nothing wrong with a claim, its use and its end', () => {
    const run = aClaim()
      .at(120)
      .call({ what: 'get', id: 'a' }, { status: 200, shows: 'Running' })
      .at(140)
      .call({ what: 'exec', id: 'a' }, { status: 200 })
      .at(195)
      .call({ what: 'delete', id: 'a' }, { status: 200 }, { completed: 210 })
      .at(200)
      .podGone('a')
      .at(220)
      .recordGone('a')
      .at(300)
      .call({ what: 'get', id: 'a' }, { status: 404 });
    expect(violationsOf(run.evidence())).to.deep.equal([]);
  });

  describe('one owner', () => {
    it('catches an overwritten claim', () => {
      expect(promisesBroken(aClaim().at(150).claimed('a', { owner: BOB }))).to.include('one owner');
    });
    it('catches a second claim by the same owner', () => {
      expect(promisesBroken(aClaim().at(150).claimed('a', { claimedAt: 'later' }))).to.include(
        'one owner',
      );
    });
    it('catches an instance handed out to two clients', () => {
      expect(promisesBroken(aClaim().at(150).call(claim, { status: 201, id: 'a' }))).to.include(
        'one owner',
      );
    });
    it('catches an answer that the record contradicts', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p')
            .idle('a')
            .claimed('a', { owner: BOB })
            .call(claim, { status: 201, id: 'a' }),
        ),
      ).to.include('one owner');
    });
    it('counts repetitions with one key as one claim', () => {
      const keyed = { ...claim, key: 'k' };
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .call(keyed, undefined)
        .claimed('a', { mark: 'm' })
        .at(50)
        .call(keyed, { status: 201, id: 'a' })
        .at(90)
        .call(keyed, { status: 201, id: 'a' });
      expect(promisesBroken(run)).to.deep.equal([]);
    });
  });

  describe('nothing lost', () => {
    it('catches a claim that was never written', () => {
      expect(
        promisesBroken(new MadeUpRun().pool('p').idle('a').call(claim, { status: 201, id: 'a' })),
      ).to.deep.equal(['nothing lost']);
    });
    it('catches a claim that was acknowledged before it was written', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p')
            .idle('a')
            .at(50)
            .call(claim, { status: 201, id: 'a' })
            .at(100)
            .claimed('a'),
        ),
      ).to.deep.equal(['nothing lost']);
    });
    it('ignores a claim with an unknown outcome', () => {
      expect(
        promisesBroken(new MadeUpRun().pool('p').idle('a').at(50).call(claim).at(100).claimed('a')),
      ).to.deep.equal([]);
    });
    it('catches a delete that was undone or never done', () => {
      expect(
        promisesBroken(aClaim().at(150).call({ what: 'delete', id: 'a' }, { status: 200 })),
      ).to.deep.equal(['nothing lost']);
    });
    it('catches a delete that was acknowledged before it was written', () => {
      expect(
        promisesBroken(
          aClaim().at(150).call({ what: 'delete', id: 'a' }, { status: 200 }).at(200).podGone('a'),
        ),
      ).to.deep.equal(['nothing lost']);
    });
    it('catches a running sandbox that is reported as missing', () => {
      for (const answer of [{ status: 404 }, { status: 200, shows: 'Idle' }])
        expect(
          promisesBroken(aClaim().at(150).call({ what: 'get', id: 'a' }, answer)),
        ).to.deep.equal(['nothing lost']);
      expect(
        promisesBroken(aClaim().at(150).call({ what: 'exec', id: 'a' }, { status: 409 })),
      ).to.deep.equal(['nothing lost']);
    });
    it('accepts that a replica cannot answer', () => {
      expect(
        promisesBroken(aClaim().at(150).call({ what: 'get', id: 'a' }, { status: 503 })),
      ).to.deep.equal([]);
    });
    it('accepts that a new or ending sandbox is not found', () => {
      expect(
        promisesBroken(aClaim().call({ what: 'get', id: 'a' }, { status: 404 }, { invoked: 99 })),
      ).to.deep.equal([]);
      expect(
        promisesBroken(
          aDelete().call(
            { what: 'get', id: 'a' },
            { status: 404 },
            { invoked: 198, completed: 205 },
          ),
        ),
      ).to.deep.equal([]);
    });
    it('catches a pool that was never written, disappeared or came back', () => {
      const create = { what: 'create-pool', pool: 'q' } as const;
      const remove = { what: 'delete-pool', pool: 'q' } as const;
      expect(promisesBroken(new MadeUpRun().call(create, { status: 201 }))).to.deep.equal([
        'nothing lost',
      ]);
      expect(
        promisesBroken(
          new MadeUpRun().at(5).call(create, { status: 201 }).pool('q').at(50).poolGone('q'),
        ),
      ).to.deep.equal(['nothing lost']);
      const deleted = new MadeUpRun()
        .at(5)
        .call(create, { status: 201 })
        .pool('q')
        .at(45)
        .call(remove, { status: 200 })
        .at(50)
        .pool('q', { deleting: true });
      expect(promisesBroken(deleted.at(60).poolGone('q'))).to.deep.equal([]);
      expect(promisesBroken(deleted.at(90).pool('q', { deleting: false }))).to.deep.equal([
        'nothing lost',
      ]);
    });
  });

  describe('nothing taken away', () => {
    it('catches a running sandbox that ends by itself', () => {
      expect(promisesBroken(aClaim().at(150).podGone('a'))).to.deep.equal(['nothing taken away']);
      expect(promisesBroken(aClaim().at(150).pod('a', { terminating: true }))).to.deep.equal([
        'nothing taken away',
      ]);
      expect(promisesBroken(aClaim().at(150).recordGone('a'))).to.deep.equal([
        'nothing taken away',
      ]);
    });
    it('catches a sandbox that ended before the request', () => {
      expect(
        promisesBroken(
          aClaim().at(150).podGone('a').at(200).call({ what: 'delete', id: 'a' }, { status: 404 }),
        ),
      ).to.deep.equal(['nothing taken away']);
    });
    it('accepts the end of a sandbox whose Pod was deleted by hand', () => {
      expect(
        promisesBroken(
          aClaim()
            .at(150)
            .disturbed({ removed: ['a'] })
            .at(151)
            .podGone('a')
            .at(160)
            .recordGone('a'),
        ),
      ).to.deep.equal([]);
    });
    it('accepts the effect of a delete with an unknown outcome', () => {
      expect(
        promisesBroken(aClaim().at(150).call({ what: 'delete', id: 'a' }).at(900).podGone('a')),
      ).to.deep.equal([]);
    });
  });

  describe('no false refusal', () => {
    it('catches a refusal while an instance was idle', () => {
      expect(
        promisesBroken(new MadeUpRun().pool('p').idle('a').at(50).call(claim, EXHAUSTED).at(100)),
      ).to.deep.equal(['no false refusal']);
    });
    it('accepts an instance that is idle during a part of the call', () => {
      expect(
        promisesBroken(
          new MadeUpRun().pool('p').at(50).call(claim, EXHAUSTED).at(51).idle('a').at(200),
        ),
      ).to.deep.equal([]);
      expect(
        promisesBroken(
          new MadeUpRun().pool('p').idle('a').at(50).call(claim, EXHAUSTED).at(58).claimed('a'),
        ),
      ).to.deep.equal([]);
    });
    it('accepts that another claim reserves the instance that it gets', () => {
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .at(50)
        .call(claim, EXHAUSTED)
        .call(claim, { status: 201, id: 'a', shows: 'Running' })
        .at(100)
        .claimed('a');
      expect(promisesBroken(run)).not.to.include('no false refusal');
    });
    it('accepts that a waiting claim keeps its position for a while after a 503', () => {
      const run = (later: number): MadeUpRun =>
        new MadeUpRun()
          .pool('p')
          .idle('a')
          .at(50)
          .call({ ...claim, waitSeconds: 3 }, { status: 503, errorCode: 'UNAVAILABLE' })
          .at(50 + later)
          .call(claim, EXHAUSTED)
          .at(60 + later);
      expect(promisesBroken(run(1_000))).to.deep.equal([]);
      expect(promisesBroken(run(9_000))).to.deep.equal(['no false refusal']);
    });
    it('does not count instances of other pools, starting ones or those of unready nodes as idle', () => {
      expect(
        promisesBroken(
          new MadeUpRun().pool('p').pool('q').idle('a', 'q').at(50).call(claim, EXHAUSTED),
        ),
      ).to.deep.equal([]);
      expect(
        promisesBroken(new MadeUpRun().pool('p').born('a').at(50).call(claim, EXHAUSTED)),
      ).to.deep.equal([]);
      expect(
        promisesBroken(
          new MadeUpRun().pool('p').idle('a').node('node-0', false).at(50).call(claim, EXHAUSTED),
        ),
      ).to.deep.equal([]);
    });
    it('accepts silent nodes for a while after a restart of store and nodes, and no longer', () => {
      const run = (later: number): MadeUpRun =>
        new MadeUpRun()
          .pool('p')
          .idle('a')
          .disturbed({ kind: 'etcd restored' })
          .at(50 + later)
          .call(claim, EXHAUSTED)
          .at(60 + later);
      expect(promisesBroken(run(1_000))).to.deep.equal([]);
      expect(promisesBroken(run(9_000))).to.deep.equal(['no false refusal']);
    });
    it('ignores a refusal if the time of the claim is unknown', () => {
      const { sightings, ...rest } = new MadeUpRun()
        .pool('p')
        .idle('a')
        .at(50)
        .call(claim, EXHAUSTED)
        .at(100)
        .claimed('a')
        .evidence();
      expect(
        violationsOf({
          ...rest,
          sightings: sightings.filter(({ asked }) => asked < 20 || asked > 101),
        }),
      ).to.deep.equal([]);
    });
  });

  describe('quota', () => {
    const three = (): MadeUpRun => {
      const run = new MadeUpRun().pool('p');
      for (const id of ['a', 'b', 'c']) run.idle(id).claimed(id);
      return run;
    };
    it('catches one sandbox too many', () => {
      const run = three();
      run.quota = 2;
      expect(promisesBroken(run)).to.deep.equal(['quota kept']);
    });
    it('counts each user separately, in teams and alone', () => {
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .claimed('a')
        .idle('b')
        .claimed('b', { owner: BOB })
        .at(50)
        .call({ what: 'delete', id: 'a' }, { status: 200 })
        .podGone('a')
        .idle('c')
        .claimed('c');
      run.quota = 1;
      expect(promisesBroken(run)).to.deep.equal([]);
    });
  });

  describe('a delete', () => {
    it('is not final if a replica still shows the sandbox as running or runs a command in it', () => {
      expect(
        promisesBroken(
          aDelete().at(300).call({ what: 'get', id: 'a' }, { status: 200, shows: 'Running' }),
        ),
      ).to.deep.equal(['a delete is final']);
      expect(
        promisesBroken(aDelete().at(300).call({ what: 'exec', id: 'a' }, { status: 200 })),
      ).to.deep.equal(['a delete is final']);
    });
    it('can be overtaken by an earlier request', () => {
      expect(
        promisesBroken(
          aDelete().call(
            { what: 'get', id: 'a' },
            { status: 200, shows: 'Running' },
            { invoked: 209, completed: 300 },
          ),
        ),
      ).to.deep.equal([]);
    });
    it('can show the sandbox as stopping', () => {
      expect(
        promisesBroken(
          aDelete().at(300).call({ what: 'get', id: 'a' }, { status: 200, shows: 'Stopping' }),
        ),
      ).to.deep.equal([]);
    });
  });

  describe('idempotency', () => {
    const keyed = { ...claim, key: 'k' };
    it('catches two sandboxes for one key, by their records', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p')
            .idle('a')
            .idle('b')
            .claimed('a', { mark: 'm' })
            .claimed('b', { mark: 'm' }),
        ),
      ).to.deep.equal(['one effect per key']);
    });
    it('catches two sandboxes for one key, by the answers', () => {
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .idle('b')
        .call(keyed, { status: 201, id: 'a' })
        .claimed('a')
        .at(50)
        .call(keyed, { status: 201, id: 'b' })
        .claimed('b');
      expect(promisesBroken(run)).to.deep.equal(['one effect per key']);
    });
    it('accepts that a key is used again once its sandbox is gone', () => {
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .idle('b')
        .call(keyed, { status: 201, id: 'a' })
        .claimed('a', { mark: 'm' })
        .at(40)
        .call({ what: 'delete', id: 'a' }, { status: 200 })
        .podGone('a')
        .at(50)
        .call(keyed, { status: 201, id: 'b' })
        .claimed('b', { mark: 'm' });
      expect(promisesBroken(run)).to.deep.equal([]);
    });
  });

  describe('surplus', () => {
    const three = (): MadeUpRun =>
      new MadeUpRun().pool('p', { replicas: 2 }).idle('a').at(100).idle('b').at(1_000).idle('c');
    it('is caught if nothing had happened', () => {
      expect(promisesBroken(three().at(1_100).recordGone('c'))).to.deep.equal(['surplus trimmed']);
    });
    it('can live for 5 s after a takeover, and no longer', () => {
      const stopped = { kind: 'stop', from: 500, to: 900, led: 950 };
      expect(promisesBroken(three().disturbed(stopped).at(5_900).recordGone('c'))).to.deep.equal(
        [],
      );
      expect(promisesBroken(three().disturbed(stopped).at(6_100).recordGone('c'))).to.deep.equal([
        'surplus trimmed',
      ]);
    });
    it('can wait as long as no replica can trim it', () => {
      expect(
        promisesBroken(
          three().disturbed({ from: 500, to: 20_000, led: 21_000 }).at(25_900).recordGone('c'),
        ),
      ).to.deep.equal([]);
      expect(
        promisesBroken(
          three().disturbed({ from: 500, to: 20_000, led: 21_000 }).at(26_100).recordGone('c'),
        ),
      ).to.deep.equal(['surplus trimmed']);
    });
    it('can wait during successive faults, whose overlaps count once', () => {
      const troubled = (): MadeUpRun =>
        three()
          .disturbed({ from: 500, to: 9_000, led: 10_000 })
          .disturbed({ from: 600, to: 2_000, led: 3_000 })
          .disturbed({ from: 8_000, to: 19_000, led: 20_000 });
      expect(promisesBroken(troubled().at(24_900).recordGone('c'))).to.deep.equal([]);
      expect(promisesBroken(troubled().at(25_100).recordGone('c'))).to.deep.equal([
        'surplus trimmed',
      ]);
    });
    it('does not include a record that never gets a Pod', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p', { replicas: 1 })
            .born('a')
            .at(30_000)
            .idle('b')
            .at(30_001)
            .recordGone('a'),
        ),
      ).to.deep.equal([]);
    });
    it('does not include the replacement of a sandbox that was asked to end', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p', { replicas: 1 })
            .idle('a')
            .at(100)
            .claimed('a')
            .at(200)
            .call({ what: 'delete', id: 'a' }, { status: 200 })
            .at(205)
            .idle('b')
            .podGone('a'),
        ),
      ).to.deep.equal([]);
    });
    it('does not include instances of a pool that is being deleted', () => {
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p', { replicas: 2 })
            .idle('a')
            .at(100)
            .pool('p', { replicas: 0, deleting: true })
            .at(9_000)
            .recordGone('a'),
        ),
      ).to.deep.equal([]);
    });
  });

  it('catches times an hour off, in an id and in a claim', () => {
    const at = (moment: number): string =>
      `${moment
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-')}-7000-8000-000000000000`;
    const claimedAt = (moment: number) => ({ claimedAt: new Date(moment).toISOString() });
    const right = at(1_000_000);
    expect(
      promisesBroken(
        new MadeUpRun().pool('p').at(1_000_000).idle(right).claimed(right, claimedAt(1_000_000)),
      ),
    ).to.deep.equal([]);
    expect(
      promisesBroken(new MadeUpRun().pool('p').at(1_000_000).idle(at(4_600_000))),
    ).to.deep.equal(['true time']);
    expect(
      promisesBroken(
        new MadeUpRun().pool('p').at(1_000_000).idle(right).claimed(right, claimedAt(4_600_000)),
      ),
    ).to.deep.equal(['true time']);
  });

  it('catches a 500', () => {
    expect(
      promisesBroken(new MadeUpRun().call(claim, { status: 500, errorCode: 'INTERNAL' })),
    ).to.deep.equal(['no internal error']);
  });
});
