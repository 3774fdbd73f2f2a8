import { expect } from 'chai';
import { MadeUpRun } from '../support/chaos/a-run.ts';
import { markOfGrant } from '../support/chaos/promises/one-effect-per-grant.ts';
import { violationsOf } from '../support/chaos/verdict.ts';

const ANN = 'team/team/ann';
const USED = { at: 0, attempt: 1, settled: false };
const SETTLED = { ...USED, settled: true };
const APPROVE = { what: 'decide', approval: 'g', decision: 'approve' } as const;
const DECIDED = { status: 200 } as const;
const MARK = `${markOfGrant({ id: 'g', keyId: 'key' })}.body`;

const broken = (run: MadeUpRun): readonly string[] =>
  violationsOf(run.evidence()).flatMap(({ promise, what }) =>
    promise === 'one effect per grant' ? [what] : [],
  );

/** A pool of two, and a request for one of them that waits. */
const asked = (change: Parameters<MadeUpRun['approval']>[1] = {}): MadeUpRun => {
  const run = new MadeUpRun();
  run.gated = { user: ANN, grantMs: 1_000 };
  return run.pool('p').idle('a').idle('b').at(50).approval('g', change);
};
const approved = (change: Parameters<MadeUpRun['approval']>[1] = {}): MadeUpRun =>
  asked(change)
    .at(60)
    .call(APPROVE, DECIDED, { completed: 80 })
    .at(70)
    .approval('g', { status: 'approved' });
const used = (change: Parameters<MadeUpRun['approval']>[1] = {}): MadeUpRun =>
  approved(change).at(100).approval('g', { status: 'consumed', use: USED });
/** The one claim that was approved. */
const claimed = (): MadeUpRun => used().at(110).claimed('a', { mark: MARK });
const ofDelete = { operation: 'deleteSandbox', path: '/sandboxes/a' };

describe('the verdict on approvals', () => {
  it('finds nothing wrong with approved, used and settled approvals', () => {
    const run = claimed()
      .at(120)
      .approval('g', { use: { ...USED, attempt: 2 } })
      .at(130)
      .approval('g', { use: { ...SETTLED, attempt: 2 } });

    expect(broken(run)).to.deep.equal([]);
  });

  it('accepts released and reused, denied, expired and abandoned approvals', () => {
    for (const run of [
      used()
        .at(105)
        .approval('g', { status: 'approved' })
        .at(108)
        .approval('g', { status: 'consumed', use: USED })
        .at(110)
        .claimed('a', { mark: MARK }),
      asked().at(60).approval('g', { status: 'expired' }),
      approved().at(90).approval('g', { status: 'expired' }),
      used().at(1_200).approval('g', { use: SETTLED }),
      used().at(1_010).approval('g', { use: SETTLED }), // the note of its use took 100 ms
      used().at(105).disturbed({ kind: 'clock jump' }).at(120).approval('g', { use: SETTLED }),
    ])
      expect(broken(run)).to.deep.equal([]);
  });

  it('catches a second effect', () => {
    expect(
      broken(claimed().at(150).claimed('b', { mark: MARK, claimedAt: 'later' })),
    ).to.have.length(1);
  });
  it('catches an effect without an approval, or with another one', () => {
    expect(broken(asked().at(100).claimed('a'))).to.have.length(1);
    expect(broken(used().at(110).claimed('a', { mark: 'other.body' }))).to.have.length(1);
  });
  it('catches an effect without a recorded approval or use', () => {
    for (const run of [
      asked(),
      asked().at(60).approval('g', { status: 'denied' }),
      asked().at(60).approval('g', { status: 'expired' }),
      approved(),
    ])
      expect(broken(run.at(110).claimed('a', { mark: MARK }))).to.have.length(1);
  });
  it('catches an approval that was used and settled without an effect', () => {
    expect(broken(used().at(120).approval('g', { use: SETTLED }))).to.have.length(1);
  });
  it('catches an end without an approval', () => {
    const run = claimed().at(120).approval('g', { use: SETTLED });
    expect(broken(run.at(200).podGone('a'))).to.have.length(1);
  });
  it('catches an approved end of a sandbox that lives on', () => {
    const run = used(ofDelete).at(120).approval('g', { use: SETTLED });
    expect(broken(run)).to.have.length(1);
    expect(broken(run.at(130).podGone('a').at(140).recordGone('a'))).to.deep.equal([]);
  });
  it('catches an approval that nobody gave', () => {
    expect(broken(asked().at(70).approval('g', { status: 'approved' }))).to.have.length(1);
  });
  it('catches an acknowledged decision that was lost, or a second decision', () => {
    expect(broken(asked().at(60).call(APPROVE, DECIDED))).to.have.length(1);
    expect(
      broken(
        approved()
          .at(90)
          .call({ ...APPROVE, decision: 'deny' }, DECIDED),
      ).length,
    ).to.be.greaterThan(0);
  });
  it('catches a return to an earlier state', () => {
    for (const [from, to] of [
      ['denied', 'approved'],
      ['expired', 'approved'],
      ['denied', 'pending'],
    ] as const)
      expect(
        broken(approved().at(90).approval('g', { status: from }).approval('g', { status: to })),
        `${from} to ${to}`,
      ).not.to.deep.equal([]);
    const again = claimed().at(120).approval('g', { use: SETTLED });
    expect(broken(again.at(130).approval('g', { status: 'approved' }))).to.have.length(1);
  });
});
