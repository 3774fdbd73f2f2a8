import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { AnswerBudget } from '../../src/actors/sandbox/commands/answer-budget.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

describe('the memory budget of answers', () => {
  const codeOf = (take: () => void): string | undefined => {
    try {
      take();
      return undefined;
    } catch (error) {
      expect(error).to.be.instanceOf(Refusal).and.to.include({ retryAfter: 1 });
      return (error as Refusal).code;
    }
  };

  it('gives a tenant its share for any number of answers, and more once one is sent', () => {
    const budget = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 1_000,
      tenantPercent: 50,
    });
    const [first, second] = [budget.room('a'), budget.room('a')];
    first.hold(400);
    expect(codeOf(() => second.hold(101))).to.equal('RATE_LIMITED');
    second.hold(100);
    expect(codeOf(() => second.holdAtLeast(50))).to.equal(undefined);
    expect(codeOf(() => second.hold(101))).to.equal('RATE_LIMITED');
    first.release();
    expect(codeOf(() => second.hold(500))).to.equal(undefined);
  });

  it('keeps some memory for the next tenant, and refuses answers that would use it up', () => {
    const budget = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 1_000,
      tenantPercent: 50,
    });
    const rooms = ['a', 'b', 'c'].map((tenant) => budget.room(tenant));
    rooms[0]!.hold(500);
    expect(codeOf(() => rooms[1]!.hold(251))).to.equal('UNAVAILABLE');
    rooms[1]!.hold(250);
    rooms[2]!.hold(125);
    expect(codeOf(() => budget.room('d').hold(62))).to.equal(undefined);
    expect(codeOf(() => budget.room('d').hold(501))).to.equal('RATE_LIMITED');
  });

  it('refuses a tenant at its own share, even if other tenants use little', () => {
    const budget = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 1_000,
      tenantPercent: 50,
    });
    budget.room('a').hold(10);
    expect(codeOf(() => budget.room('b').hold(496))).to.equal('RATE_LIMITED');
  });

  it('counts memory used beyond the budget, until it is released', () => {
    const budget = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 1_000,
      tenantPercent: 50,
    });
    const room = budget.room('a');
    room.owe(5_000);
    expect(codeOf(() => budget.room('b').hold(1))).to.equal('UNAVAILABLE');
    room.release();
    room.hold(900);
    room.release();
    budget.room('b').hold(500);
  });
});
