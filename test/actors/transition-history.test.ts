import { expect } from 'chai';
import fc from 'fast-check';
import {
  TransitionHistory,
  MOST_TRANSITIONS,
  type HistoryCursor,
} from '../../src/actors/runtime/transition-history.ts';
import { garbageCollector } from '../support/harness/collect-garbage.ts';
import type { Transition } from '../../src/model/inspection.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { runs } from '../support/harness/runs.ts';

const ENDED = 20_000;
/** Of what is left of an actor that has ended, in bytes; the leak that this is about was 150. */
const MOST_LEFT = 60;

const aHistory = (options: { readonly mostKept?: number } = {}) => {
  const clock = { time: 1_000, now: () => clock.time };
  const transitions = new TransitionHistory<{ readonly type: string; readonly why?: string }>({
    kind: 'sandbox',
    clock,
    log: quietLog,
    causeOf: ({ why = '' }) => why,
    ...options,
  });
  const move = (key: string, to: string, { type = 'GO', why = '', group = 'g' } = {}): void => {
    transitions.moved(key, to, { event: { type, why }, group, born: 1 });
    clock.time += 10;
  };
  return { transitions, move };
};

describe('the transition histories of actors', () => {
  it('show how an actor reached its state, and how long each state lasted', () => {
    const { transitions, move } = aHistory();
    move('a', 'idle', { type: 'FOUND' });
    move('a', 'running', { type: 'CLAIM', why: 'a request' });

    expect(transitions.of('a')).to.deep.equal([
      { number: 1, at: 1_000, event: 'FOUND', cause: '', from: '', to: 'idle', stoodMs: 0 },
      {
        number: 2,
        at: 1_010,
        event: 'CLAIM',
        cause: 'a request',
        from: 'idle',
        to: 'running',
        stoodMs: 10,
      },
    ]);
    expect(transitions.current('a')).to.deep.equal({
      state: 'running',
      since: 1_010,
      moves: 2,
      group: 'g',
    });
  });

  it('skip events that change no state', () => {
    const { transitions, move } = aHistory();
    move('a', 'idle');
    move('a', 'idle');

    expect(transitions.of('a')).to.have.length(1);
  });

  it("keep an actor's last 50 transitions, and go on counting", () => {
    const { transitions, move } = aHistory();
    for (let n = 0; n < 120; n++) move('a', n % 2 === 0 ? 'x' : 'y');

    const numbers = transitions.of('a').map(({ number }) => number);
    expect(numbers).to.have.length(MOST_TRANSITIONS);
    expect([numbers[0], numbers.at(-1)]).to.deep.equal([71, 120]);
  });

  it("drop the oldest actors' transitions if there are too many, but keep their states", () => {
    const { transitions, move } = aHistory({ mostKept: 4 });
    for (const key of ['a', 'b', 'c']) {
      move(key, 'idle');
      move(key, 'running');
    }

    expect(['a', 'b', 'c'].map((key) => transitions.of(key).length)).to.deep.equal([0, 2, 2]);
    expect(transitions.current('a')).to.deep.equal({
      state: 'running',
      since: 0,
      moves: 2,
      group: 'g',
    });
    expect(transitions.page({ limit: 10 }).keys).to.deep.equal(['a', 'b', 'c']);
  });

  for (const [mostKept, when] of [
    [1_000, 'before there were too many'],
    [2, 'and there were too many once'],
  ] as const) {
    it(`keep nothing of ended actors, ${when}`, () => {
      const { transitions, move } = aHistory({ mostKept });
      for (const key of ['a', 'b', 'c']) move(key, 'idle');
      const churn = (from: number): void => {
        for (let n = from; n < from + ENDED; n++) {
          move(`${n}`, 'idle');
          transitions.ended(`${n}`);
        }
      };
      const collect = garbageCollector();
      churn(0);
      for (const key of ['a', 'b', 'c']) transitions.ended(key);
      collect();
      const before = process.memoryUsage().heapUsed;
      churn(ENDED);
      collect();

      expect((process.memoryUsage().heapUsed - before) / ENDED).to.be.below(MOST_LEFT);
    });
  }

  it('go on dropping in order after a pause', () => {
    const { transitions, move } = aHistory({ mostKept: 300 });
    for (let n = 0; n < 250; n++) move(`old ${n}`, 'idle');
    for (let n = 0; n < 3_000; n++) {
      move(`${n}`, 'idle');
      transitions.ended(`${n}`);
    }
    for (let n = 0; n < 500; n++) move(`new ${n}`, 'idle');

    const kept = ['old', 'new'].map((age) =>
      Array.from({ length: 500 }, (_, n) => transitions.of(`${age} ${n}`).length).reduce(
        (sum, each) => sum + each,
      ),
    );
    expect(kept).to.deep.equal([0, 300]);
  });

  it('count the actors in each state, and in each region of parallel states', () => {
    const { transitions, move } = aHistory();
    move('a', 'scale.short breaker.open');
    move('b', 'scale.short breaker.closed');
    move('b', 'scale.settled breaker.closed');
    move('c', 'scale.settled breaker.closed');
    transitions.ended('c');

    expect(Object.fromEntries(transitions.counts())).to.deep.equal({
      'scale.short': 1,
      'breaker.open': 1,
      'scale.settled': 1,
      'breaker.closed': 1,
    });
  });

  it('send followers each transition, and the end', () => {
    const { transitions, move } = aHistory();
    const seen: (Transition | undefined)[] = [];
    move('a', 'idle');
    const unfollow = transitions.follow('a', (transition) => {
      seen.push(transition);
    });
    move('b', 'idle');
    move('a', 'running');
    transitions.ended('a');
    unfollow();
    move('a', 'idle');

    expect(seen.map((each) => each?.to)).to.deep.equal(['running', undefined]);
  });

  it('are listed in pages, with each matching actor once', () => {
    const actor = fc.record({
      key: fc.constantFrom(...'abcdefghij'),
      group: fc.constantFrom('g1', 'g2', 'g3'),
      state: fc.constantFrom('idle.available', 'idle.unavailable', 'running', 'x.y z.w'),
    });
    const query = fc.record({
      group: fc.option(fc.constantFrom('g1', 'g2', 'none'), { nil: undefined }),
      state: fc.option(fc.constantFrom('idle', 'idle.available', 'running', 'z', 'run'), {
        nil: undefined,
      }),
      limit: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(fc.array(actor, { maxLength: 25 }), query, (actors, { group, state, limit }) => {
        const { transitions, move } = aHistory();
        const model = new Map<string, { readonly group: string; readonly state: string }>();
        for (const each of actors) {
          const first = model.get(each.key)?.group ?? each.group;
          model.set(each.key, { group: first, state: each.state });
          move(each.key, each.state, { group: first });
        }
        const found: string[] = [];
        let after: HistoryCursor | undefined;
        for (let pages = 0; pages < 20; pages++) {
          const page = transitions.page({ group, state, after, limit });
          expect(page.keys.length).to.be.at.most(limit);
          found.push(...page.keys);
          after = page.next;
          if (!after) break;
        }
        const fits = [...model]
          .filter(
            ([, one]) =>
              (group === undefined || one.group === group) &&
              (state === undefined ||
                one.state
                  .split(' ')
                  .some((part) => part === state || part.startsWith(`${state}.`))),
          )
          .map(([key]) => key);
        expect([...found].sort()).to.deep.equal(fits.sort());
      }),
      { numRuns: runs(500) },
    );
  });
});
