import { expect } from 'chai';
import fc from 'fast-check';
import { check } from '../properties/check.ts';
import { ModelRun } from '../support/chaos/model-run.ts';
import { violationsOf } from '../support/chaos/verdict.ts';
import { Dice } from '../support/builders/hostile-values.ts';
import { runs } from '../support/harness/runs.ts';

const STEPS = 120;
/** Of which a run comes; a failure names it. */
const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const aRun = (seed: number): ModelRun => new ModelRun(new Dice(seed), STEPS);
const claim = { what: 'claim', pool: 'p' } as const;

/** One misdeed at the end of a run that was good until then. */
const MISDEEDS: Readonly<Record<string, (model: ModelRun) => unknown>> = {
  'one owner': ({ run, running }) => {
    for (const id of first(running)) run.claimed(id, { owner: 'team/team/bob' });
  },
  'nothing lost': ({ run }) => run.call(claim, { status: 201, id: 'an-id-that-nobody-wrote' }),
  'nothing taken away': ({ run, running }) => {
    for (const id of first(running)) run.podGone(id);
  },
  'no false refusal': ({ run, idle }) => {
    for (const id of first(idle))
      run
        .at(run.now + 10)
        .call(claim, { status: 429, errorCode: 'POOL_EXHAUSTED', id })
        .at(run.now + 100);
  },
  'quota kept': ({ run }) => {
    for (const id of ['x', 'y', 'z', 'more']) run.idle(id).claimed(id, { mark: id });
  },
  'a delete is final': ({ run, deleted }) => {
    for (const id of first(deleted))
      run.at(run.now + 100).call({ what: 'get', id }, { status: 200, shows: 'Running' });
  },
  'one effect per key': ({ run }) => {
    for (const id of ['x', 'y']) run.idle(id).claimed(id, { mark: 'the same' });
  },
  'surplus trimmed': ({ run }) => {
    for (const id of ['v', 'w', 'x', 'y', 'z']) run.idle(id);
  },
  'each shard is led': ({ run }) => run.rest(11_000, { led: [[0, 1, 2]] }),
  'each pool is full': ({ run, idle }) => {
    for (const id of first(idle))
      run
        .podGone(id)
        .recordGone(id)
        .at(run.now + 20_000)
        .rest(11_000);
  },
  'nothing taken that no claim holds': ({ run }) =>
    run
      .pool('q', { replicas: 0, deleting: true })
      .at(run.now + 20_000)
      .rest(11_000),
  'quota equals the records': ({ run }) =>
    run.rest(61_000, { usage: { 'team/team/ann': { sandboxes: 9, pools: 1, replicas: 4 } } }),
};

describe('the verdict on random runs', () => {
  it('finds nothing wrong if all promises were kept', () => {
    check(
      fc.property(seeds, (seed) => {
        const { run } = aRun(seed);
        // The answer of its last call may be lost, which none of a time of rest is.
        run.at(run.now + 1).rest(9_000);
        expect(violationsOf(run.evidence())).to.deep.equal([]);
      }),
      { numRuns: runs(300), examples: [[2_063_625_130]] },
    );
  });

  for (const [promise, commit] of Object.entries(MISDEEDS)) {
    it(`finds a single violation of "${promise}"`, () => {
      check(
        fc.property(seeds, (seed) => {
          const model = aRun(seed);
          // Where a run by chance ended without what it takes, nothing is asked.
          fc.pre(model.running.size > 0 && model.idle.size > 0 && model.deleted.size > 0);
          model.run.at(model.run.now + 1_000_000);
          commit(model);
          expect(
            violationsOf(model.run.evidence()).map((violation) => violation.promise),
          ).to.include(promise);
        }),
        { numRuns: runs(50) },
      );
    });
  }
});

const first = (ids: ReadonlySet<string>): readonly string[] => [...ids].slice(0, 1);
