import { expect } from 'chai';
import { KeptAnswers, SWEEP_PAUSE_MS } from '../../../src/embedded/store/kept-answers.ts';
import { ALICE } from '../../support/builders/instance-orders.ts';
import { MemoryAnswerRows } from '../../support/fakes/memory-answer-rows.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';

describe('stored answers', () => {
  let rows: MemoryAnswerRows;
  let clock: TestClock;

  beforeEach(() => {
    rows = new MemoryAnswerRows();
    clock = new TestClock();
  });

  const start = async (
    bounds = { totalBytes: 1_000_000, tenantBytes: 1_000_000 },
  ): Promise<KeptAnswers> => {
    const answers = new KeptAnswers({ rows, clock, log: quietLog, bounds });
    await answers.start();
    return answers;
  };
  const keep = async (
    answers: KeptAnswers,
    key: string,
    user = 'p',
    answer = `answer to ${key}`,
  ): Promise<void> => {
    await answers.open({ key, body: 'b' });
    await answers.keep({ key, body: 'b' }, { tenant: { ...ALICE, user }, ttlMs: 1_000 }, answer);
  };
  const kindOf = async (answers: KeptAnswers, key: string): Promise<string> => {
    const { kind } = await answers.open({ key, body: 'b' });
    answers.giveUp({ key, body: 'b' });
    return kind;
  };

  it('are found by the next process, which has no requests in flight', async () => {
    const before = await start();
    await keep(before, 'done');
    await before.open({ key: 'half', body: 'b' });

    const after = await start();

    expect([await kindOf(after, 'done'), await kindOf(after, 'half')]).to.deep.equal([
      'answered',
      'new',
    ]);
  });

  it("include a request's target for the next process, until its answer replaces it", async () => {
    const mark = { key: 'k', body: 'b' };
    const owner = { tenant: ALICE, ttlMs: 1_000 };
    const before = await start();
    await before.open(mark);
    await before.place(mark, owner, 'west::p');
    const after = await start();
    expect(await after.open(mark)).to.deep.equal({ kind: 'new', place: 'west::p' });
    const written: string[] = [];
    const { keep: keepRow, forget } = rows;
    Object.assign(rows, {
      keep: (...row: Parameters<typeof keepRow>) => (written.push('keep'), keepRow(...row)),
      forget: (seq: number) => (written.push('forget'), forget(seq)),
    });
    await after.keep(mark, owner, 'the answer');

    expect(written).to.deep.equal(['keep', 'forget']);
    expect([...rows.rows.values()]).to.have.length(1);
    expect(await (await start()).open(mark)).to.deep.equal({
      kind: 'answered',
      answer: 'the answer',
    });
  });

  it('of one tenant displace only its own oldest, by size', async () => {
    const answers = await start({ totalBytes: 1_000_000, tenantBytes: 100_000 });
    await keep(answers, 'other', 'q');
    for (const key of ['a', 'b', 'c']) await keep(answers, key, 'p', 'ü'.repeat(20_000));

    expect(rows.keys).to.deep.equal(['other', 'b', 'c']);
    expect(await kindOf(answers, 'a')).to.equal('new');
  });

  it('displace the oldest of the largest tenant if the total is too large, even at a start', async () => {
    const answers = await start({ totalBytes: 100_000, tenantBytes: 100_000 });
    await keep(answers, 'quiet', 'q');
    for (const key of ['a', 'b', 'c']) await keep(answers, key, 'p', 'x'.repeat(40_000));
    expect(rows.keys).to.deep.equal(['quiet', 'b', 'c']);

    await start({ totalBytes: 50_000, tenantBytes: 50_000 });

    expect(rows.keys).to.deep.equal(['quiet', 'c']);
  });

  it("omit an answer that exceeds its tenant's share", async () => {
    const answers = await start({ totalBytes: 1_000, tenantBytes: 1_000 });
    await keep(answers, 'a', 'p', 'x'.repeat(1_000));

    expect([rows.rows.size, await kindOf(answers, 'a')]).to.deep.equal([0, 'new']);
  });

  it('are deleted after their time, however many there are', async () => {
    const answers = await start();
    for (let n = 0; n < 250; n++) await keep(answers, `k${n}`);
    clock.advance(500);
    await keep(answers, 'young');

    clock.advance(SWEEP_PAUSE_MS - 500);
    expect(rows.rows.size).to.equal(151);
    clock.advance(200);

    expect(rows.rows.size).to.equal(0);
  });
});
