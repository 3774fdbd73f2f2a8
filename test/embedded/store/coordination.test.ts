import { expect } from 'chai';
import { inProcessCoordination, MAX_TOKENS } from '../../../src/embedded/coordination.ts';
import { Refusal } from '../../../src/model/refusals.ts';
import { coordinationSuite } from '../../contracts/coordination.ts';
import { rejection } from '../../support/rejection.ts';
import { TestClock } from '../../support/test-clock.ts';

coordinationSuite('in the process', async () => {
  const clock = new TestClock();
  return { coordination: inProcessCoordination(clock), advance: async (ms) => { clock.advance(ms); }, close: async () => undefined };
});

describe('in-process coordination', () => {
  it('refuses a token over the most that may wait, until some are used or too old', async () => {
    const clock = new TestClock();
    const coordination = inProcessCoordination(clock);
    const first = await coordination.issueToken('first', 60_000);
    for (let n = 1; n < MAX_TOKENS; n++) await coordination.issueToken('x', 30_000);

    expect(await rejection(coordination.issueToken('one more', 30_000))).to.be.instanceOf(Refusal).with.property('code', 'UNAVAILABLE');
    clock.advance(30_000);

    expect(await coordination.issueToken('one more', 30_000)).to.be.a('string');
    expect(await coordination.redeemToken(first)).to.equal('first');
  });
});
