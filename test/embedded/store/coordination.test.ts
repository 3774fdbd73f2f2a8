import { expect } from 'chai';
import { sqliteAnswerRows } from '../../../src/embedded/store/answer-rows.ts';
import { MAX_TOKENS } from '../../../src/contracts/tokens.ts';
import { inProcessCoordination } from '../../../src/embedded/coordination/coordination.ts';
import { KeptAnswers } from '../../../src/embedded/store/kept-answers.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { Refusal } from '../../../src/model/refusals.ts';
import { coordinationSuite } from '../../contracts/coordination.ts';
import { aCoordination, FEW_BYTES } from '../../support/fakes/a-coordination.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { aDatabase } from './a-database.ts';

coordinationSuite('in the process', async () => {
  const clock = new TestClock();
  return {
    coordination: aCoordination(clock),
    advance: async (ms) => {
      clock.advance(ms);
    },
    close: async () => undefined,
  };
});

describe('in-process coordination', () => {
  it('refuses a token beyond the maximum, until some are used or expired', async () => {
    const clock = new TestClock();
    const coordination = aCoordination(clock);
    const first = await coordination.issueToken('first', 60_000, holder(0));
    for (let n = 1; n < MAX_TOKENS; n++) await coordination.issueToken('x', 30_000, holder(n));

    expect(await rejection(coordination.issueToken('one more', 30_000, holder(MAX_TOKENS))))
      .to.be.instanceOf(Refusal)
      .with.property('code', 'UNAVAILABLE');
    clock.advance(30_000);

    expect(await coordination.issueToken('one more', 30_000, holder(MAX_TOKENS))).to.be.a('string');
    expect(await coordination.redeemToken(first)).to.equal('first');
  });
});

/** On the file, as the daemon has it; writes that wait for company go by the system's clock. */
coordinationSuite('in the process, with its answers in SQLite', async () => {
  const { database, clock, close } = await aDatabase({ clock: systemClock() });
  const answers = new KeptAnswers({
    rows: sqliteAnswerRows(database),
    clock,
    log: quietLog,
    bounds: FEW_BYTES,
  });
  return {
    coordination: inProcessCoordination(clock, answers),
    advance: async (ms) => {
      clock.advance(ms);
    },
    close,
  };
});

/** Far from the limits of a sandbox and of a tenant. */
const holder = (n: number) => ({
  sandbox: `sandbox-${n}`,
  tenant: { namespace: 'alpha', team: 'alpha', user: `user-${n % 100}` },
});
