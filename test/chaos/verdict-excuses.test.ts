import { expect } from 'chai';
import { MadeUpRun } from '../support/chaos/a-run.ts';
import { violationsOf } from '../support/chaos/verdict.ts';

const promisesBroken = (run: MadeUpRun): readonly string[] => [
  ...new Set(violationsOf(run.evidence()).map(({ promise }) => promise)),
];
const claim = { what: 'claim', pool: 'p' } as const;
const NEVER = 'nothing taken away';

const aClaim = (idleTimeoutMs = 0): MadeUpRun =>
  new MadeUpRun()
    .pool('p')
    .idle('a')
    .at(95)
    .call(claim, { status: 201, id: 'a' }, { completed: 110 })
    .at(100)
    .claimed('a', { idleTimeoutMs });

describe('excuses in the verdict', () => {
  describe('a sandbox', () => {
    it('can end by its idle timeout, and no sooner', () => {
      expect(promisesBroken(aClaim(3_000).at(3_200).podGone('a'))).to.deep.equal([]);
      expect(promisesBroken(aClaim(3_000).at(1_500).podGone('a'))).to.deep.equal([NEVER]);
      expect(promisesBroken(aClaim().at(1e6).podGone('a'))).to.deep.equal([NEVER]);
    });
    it('cannot end while a command runs in it', () => {
      const exec = { what: 'exec', id: 'a', seconds: 4 } as const;
      expect(
        promisesBroken(
          aClaim(3_000)
            .at(1_000)
            .call(exec, { status: 200 }, { completed: 5_100 })
            .at(4_900)
            .podGone('a'),
        ),
      ).to.deep.equal([NEVER]);
      expect(
        promisesBroken(
          aClaim(3_000)
            .at(1_000)
            .call(exec, { status: 200 }, { completed: 5_100 })
            .at(8_100)
            .podGone('a'),
        ),
      ).to.deep.equal([]);
    });
    it('can end with its pool only by force', () => {
      const ended = (force: boolean): MadeUpRun =>
        aClaim()
          .at(200)
          .call({ what: 'delete-pool', pool: 'p', force }, { status: 200 })
          .pool('p', { deleting: true })
          .podGone('a')
          .recordGone('a')
          .poolGone('p');
      expect(promisesBroken(ended(true))).to.deep.equal([]);
      expect(promisesBroken(ended(false))).to.deep.equal([NEVER]);
    });
    it('cannot end because its label was removed', () => {
      expect(
        promisesBroken(
          aClaim()
            .at(200)
            .disturbed({ edited: ['a'] })
            .podGone('a'),
        ),
      ).to.deep.equal([NEVER]);
    });
  });

  it('allow an instance without labels to be missed in searches and counts', () => {
    const edited = (): MadeUpRun =>
      new MadeUpRun()
        .pool('p', { replicas: 1 })
        .idle('a')
        .at(50)
        .disturbed({ edited: ['a'] });
    expect(
      promisesBroken(edited().call(claim, { status: 429, errorCode: 'POOL_EXHAUSTED' }).at(100)),
    ).to.deep.equal([]);
    expect(promisesBroken(edited().at(50_000).idle('b').at(90_000))).to.deep.equal([]);
  });

  describe('a namespace that was deleted', () => {
    const deleted = (): MadeUpRun =>
      aClaim()
        .at(200)
        .disturbed({ namespace: 'team', to: 5_000, led: 5_000 })
        .podGone('a')
        .recordGone('a')
        .poolGone('p');

    it('excuses its old names, and a new pool of the same name can end by force', () => {
      const next = deleted()
        .at(9_000)
        .pool('p', { poolUid: 'uid-of-next' })
        .idle('b', 'next')
        .at(9_100)
        .call({ ...claim }, { status: 201, id: 'b' })
        .claimed('b')
        .at(9_900)
        .call({ what: 'delete-pool', pool: 'p', force: true }, { status: 200 })
        .podGone('b');
      expect(promisesBroken(next)).to.deep.equal([]);
    });
    it('excuses the loss of its content', () => {
      expect(promisesBroken(deleted())).to.deep.equal([]);
    });
    it('excuses no loss of objects created later', () => {
      const later = deleted()
        .at(9_000)
        .pool('q')
        .idle('b', 'q')
        .call({ ...claim, pool: 'q' }, { status: 201, id: 'b' })
        .claimed('b')
        .at(9_900)
        .podGone('b');
      expect(promisesBroken(later)).to.deep.equal([NEVER]);
    });
    it('excuses no loss in another namespace', () => {
      expect(
        promisesBroken(aClaim().at(200).disturbed({ namespace: 'other', to: 5_000 }).podGone('a')),
      ).to.deep.equal([NEVER]);
    });
  });

  describe('a store restored from a backup', () => {
    it('excuses the loss of later writes, and nothing else', () => {
      const run = new MadeUpRun()
        .pool('p')
        .idle('a')
        .idle('b')
        .at(10)
        .call({ ...claim }, { status: 201, id: 'b' }, { completed: 40 })
        .at(20)
        .claimed('b');
      const kept = run.at(100).revision;
      run
        .at(110)
        .call(claim, { status: 201, id: 'a' }, { completed: 130 })
        .at(120)
        .claimed('a')
        .at(200)
        .setBack(kept);
      expect(promisesBroken(run)).to.deep.equal([]);
      expect(promisesBroken(run.at(20_000).podGone('b'))).to.deep.equal([NEVER]);
    });
    it('must match the usage after calm, with lost writes or without', () => {
      const run = new MadeUpRun().pool('p', { replicas: 1 }).idle('a').at(100);
      const kept = run.revision;
      run.claimed('a').at(200).setBack(kept);
      const told = (pools: number) => ({
        usage: { 'team/team/ann': { sandboxes: 0, pools, replicas: 1 } },
      });
      expect(promisesBroken(run.at(20_000).rest(61_000, told(1)))).to.deep.equal([]);
      expect(promisesBroken(run.rest(61_000, told(2)))).to.deep.equal(['quota equals the records']);
    });
    it('excuses no loss of later claims', () => {
      const run = new MadeUpRun().pool('p').idle('a').at(100);
      run.setBack(run.revision);
      expect(
        promisesBroken(
          run
            .at(50_000)
            .call(claim, { status: 201, id: 'a' }, { completed: 50_020 })
            .at(50_010)
            .claimed('a')
            .at(60_000)
            .podGone('a'),
        ),
      ).to.deep.equal([NEVER]);
    });
  });

  describe('a request right after a restore', () => {
    const setBack = (): MadeUpRun => {
      const run = new MadeUpRun()
        .at(5)
        .call({ what: 'create-pool', pool: 'p' }, { status: 201 })
        .pool('p')
        .at(50)
        .idle('a')
        .at(100);
      run.setBack(run.revision);
      return run;
    };

    it('can delete a pool made long before', () => {
      const remove = { what: 'delete-pool', pool: 'p' } as const;
      const deleted = setBack()
        .at(5_000)
        .call(remove, { status: 200 })
        .pool('p', { deleting: true });
      expect(promisesBroken(deleted.recordGone('a').at(9_000).poolGone('p'))).to.deep.equal([]);
      expect(promisesBroken(setBack().at(9_000).recordGone('a').poolGone('p'))).to.deep.equal([
        'nothing lost',
      ]);
    });
    it('keeps its position before later requests', () => {
      const refused = { status: 429, errorCode: 'POOL_EXHAUSTED' } as const;
      const later = (run: MadeUpRun): MadeUpRun => run.at(12_000).call(claim, refused).at(20_000);
      const waits = { ...claim, waitSeconds: 10 };
      expect(
        promisesBroken(later(setBack().at(5_000).call(waits, undefined, { completed: 14_000 }))),
      ).to.deep.equal([]);
      expect(promisesBroken(later(setBack()))).to.deep.equal(['no false refusal']);
    });
  });

  describe('envs and pools', () => {
    const env = 'e';
    it('cannot be lost or denied while they exist', () => {
      expect(
        promisesBroken(new MadeUpRun().call({ what: 'create-env', env }, { status: 201 })),
      ).to.deep.equal(['nothing lost']);
      const made = (): MadeUpRun =>
        new MadeUpRun()
          .call({ what: 'create-env', env }, { status: 201 }, { completed: 10 })
          .at(5)
          .env('e')
          .at(100);
      expect(promisesBroken(made())).to.deep.equal([]);
      expect(
        promisesBroken(made().call({ what: 'get-env', env }, { status: 404 }).at(200)),
      ).to.deep.equal(['nothing lost']);
      expect(
        promisesBroken(
          made().call({ what: 'label-env', env, label: 'x' }, { status: 200 }).at(200),
        ),
      ).to.deep.equal(['nothing lost']);
      expect(
        promisesBroken(
          made()
            .call({ what: 'label-env', env, label: 'x' }, { status: 200 })
            .at(105)
            .env('e', { label: 'x' })
            .at(200),
        ),
      ).to.deep.equal([]);
      expect(
        promisesBroken(made().call({ what: 'delete-env', env }, { status: 200 }).at(200)),
      ).to.deep.equal(['nothing lost']);
    });
    it('have the acknowledged size', () => {
      const resize = { what: 'resize-pool', pool: 'p', replicas: 4 } as const;
      expect(
        promisesBroken(new MadeUpRun().pool('p').at(50).call(resize, { status: 200 }).at(90)),
      ).to.deep.equal(['nothing lost']);
      expect(
        promisesBroken(
          new MadeUpRun()
            .pool('p')
            .at(50)
            .call(resize, { status: 200 })
            .at(55)
            .pool('p', { replicas: 4 })
            .at(90),
        ),
      ).to.deep.equal([]);
    });
    it('request no more replicas than the quota', () => {
      const run = new MadeUpRun();
      run.replicaQuota = 15;
      expect(promisesBroken(run.pool('p').pool('q', { replicas: 5 }))).to.deep.equal([]);
      expect(promisesBroken(run.pool('q', { replicas: 6 }))).to.deep.equal(['quota kept']);
    });
    it('can get a size below the running sandboxes, which stay', () => {
      const run = new MadeUpRun()
        .pool('p', { replicas: 2 })
        .idle('a')
        .claimed('a')
        .idle('b')
        .claimed('b')
        .at(50_000)
        .pool('p', { replicas: 1 });
      expect(promisesBroken(run.at(90_000))).to.deep.equal([]);
      expect(promisesBroken(run.idle('c').at(120_000))).to.deep.equal(['surplus trimmed']);
    });
  });
});
