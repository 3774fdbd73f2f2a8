import { expect } from 'chai';
import { sqliteAnswerRows } from '../../../src/embedded/answer-rows.ts';
import { inProcessCoordination, MAX_TOKENS } from '../../../src/embedded/coordination.ts';
import { KeptAnswers } from '../../../src/embedded/kept-answers.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { Refusal } from '../../../src/model/refusals.ts';
import { coordinationSuite } from '../../contracts/coordination.ts';
import { aCoordination } from '../../support/a-coordination.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { rejection } from '../../support/rejection.ts';
import { TestClock } from '../../support/test-clock.ts';
import { aDatabase } from './a-database.ts';

coordinationSuite('in the process', async () => {
  const clock = new TestClock();
  return { coordination: aCoordination(clock), advance: async (ms) => { clock.advance(ms); }, close: async () => undefined };
});

describe('in-process coordination', () => {
  it('refuses a token over the most that may wait, until some are used or too old', async () => {
    const clock = new TestClock();
    const coordination = aCoordination(clock);
    const first = await coordination.issueToken('first', 60_000);
    for (let n = 1; n < MAX_TOKENS; n++) await coordination.issueToken('x', 30_000);

    expect(await rejection(coordination.issueToken('one more', 30_000))).to.be.instanceOf(Refusal).with.property('code', 'UNAVAILABLE');
    clock.advance(30_000);

    expect(await coordination.issueToken('one more', 30_000)).to.be.a('string');
    expect(await coordination.redeemToken(first)).to.equal('first');
  });
});

/** On the file, as the daemon has it; writes that wait for company go by the system's clock. */
coordinationSuite('in the process, with its answers in SQLite', async () => {
  const { database, clock, close } = await aDatabase({ clock: systemClock() });
  const answers = new KeptAnswers({ rows: sqliteAnswerRows(database), clock, log: quietLog });
  return { coordination: inProcessCoordination(clock, answers), advance: async (ms) => { clock.advance(ms); }, close };
});
