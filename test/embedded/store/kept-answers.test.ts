import { expect } from 'chai';
import { KeptAnswers, SWEEP_PAUSE_MS } from '../../../src/embedded/kept-answers.ts';
import { ALICE } from '../../support/instance-orders.ts';
import { MemoryAnswerRows } from '../../support/memory-answer-rows.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { TestClock } from '../../support/test-clock.ts';

describe('kept answers', () => {
  let rows: MemoryAnswerRows;
  let clock: TestClock;

  beforeEach(() => {
    rows = new MemoryAnswerRows();
    clock = new TestClock();
  });

  const start = async (limits = { all: 100, ofPrincipal: 10 }): Promise<KeptAnswers> => {
    const answers = new KeptAnswers({ rows, clock, log: quietLog, limits });
    await answers.start();
    return answers;
  };
  const keep = async (answers: KeptAnswers, key: string, principal = 'p'): Promise<void> => {
    await answers.open({ key, body: 'b' });
    await answers.keep({ key, body: 'b' }, { tenant: ALICE, principal, ttlMs: 1_000 }, `answer to ${key}`);
  };
  const kindOf = async (answers: KeptAnswers, key: string): Promise<string> => {
    const { kind } = await answers.open({ key, body: 'b' });
    answers.giveUp({ key, body: 'b' });
    return kind;
  };

  it('are found again by the next process, which knows of nothing in flight', async () => {
    const before = await start();
    await keep(before, 'done');
    await before.open({ key: 'half', body: 'b' });

    const after = await start();

    expect([await kindOf(after, 'done'), await kindOf(after, 'half')]).to.deep.equal(['answered', 'new']);
  });

  it('of one principal push out its own oldest alone', async () => {
    const answers = await start({ all: 100, ofPrincipal: 2 });
    for (const key of ['a', 'b', 'c']) await keep(answers, key);
    await keep(answers, 'other', 'q');

    expect(rows.keys).to.deep.equal(['b', 'c', 'other']);
    expect(await kindOf(answers, 'a')).to.equal('new');
  });

  it('push out the oldest of all past the limit, also at a start', async () => {
    const answers = await start({ all: 2, ofPrincipal: 10 });
    for (const [place, key] of ['a', 'b', 'c'].entries()) await keep(answers, key, `p${place}`);
    expect(rows.keys).to.deep.equal(['b', 'c']);

    await start({ all: 1, ofPrincipal: 10 });

    expect(rows.keys).to.deep.equal(['c']);
  });

  it('are swept once their time has passed, however many there are', async () => {
    const answers = await start({ all: 1_000, ofPrincipal: 1_000 });
    for (let n = 0; n < 250; n++) await keep(answers, `k${n}`);
    clock.advance(500);
    await keep(answers, 'young');

    clock.advance(SWEEP_PAUSE_MS - 500);
    expect(rows.rows.size).to.equal(151);
    clock.advance(200);

    expect(rows.rows.size).to.equal(0);
  });
});
