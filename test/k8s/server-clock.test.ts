import { expect } from 'chai';
import { ServerClock } from '../../src/k8s/api/server-clock.ts';

const httpDate = (moment: number): string => new Date(moment).toUTCString();

describe('the server clock', () => {
  const NOON = Date.UTC(2026, 0, 1, 12);
  let local: number;
  let ahead: number;
  let clock: ServerClock;
  /** The server's own time; `ahead` of the local monotonic one, which starts at 5,000. */
  const truth = (): number => NOON + local + ahead;
  /** An answer that took `ms`; the server made it half-way. */
  const answer = (ms = 4): void => {
    const sentAt = local;
    local += ms / 2;
    const date = httpDate(truth());
    local += ms / 2;
    clock.observe(date, sentAt);
  };
  /** Answers at odd distances for so long. */
  const answers = (forMs: number): void => {
    for (const end = local + forMs; local < end; local += 137) answer();
  };

  beforeEach(() => {
    [local, ahead] = [5_000, 0];
    clock = new ServerClock(() => local);
  });

  it('has no time before the first answer', () => {
    expect(() => clock.now()).to.throw('has not sent its time yet');
    clock.observe('yesterday', local);
    expect(() => clock.now()).to.throw('has not sent its time yet');
  });

  it('is set by the first answer, with half a second of error', () => {
    answer();

    expect(Math.abs(clock.now() - truth())).to.be.at.most(510);
    expect(Number.isInteger(clock.now())).to.equal(true);
  });

  it('improves to a few milliseconds over many answers', () => {
    answers(120_000);

    expect(Math.abs(clock.now() - truth())).to.be.at.most(20);
  });

  it('continues without answers', () => {
    answers(120_000);
    local += 3_600_000;

    expect(Math.abs(clock.now() - truth())).to.be.at.most(20);
  });

  for (const [what, jump] of [
    ['back', -3_600_000],
    ['forward', 3_600_000],
  ] as const) {
    it(`adjusts smoothly if the server's time jumps ${what}, and never goes back`, () => {
      answers(60_000);
      let [last, lastLocal] = [clock.now(), local];
      /** By how many ms a step of its was off that of the local clock, beyond a tenth of that. */
      let mostOff = 0;
      ahead += jump;

      for (let step = 0; step < 100_000 && Math.abs(last - truth()) >= 1_000; step += 1) {
        if (step % 200 === 1) local += 60_000;
        local += 61;
        if (step % 50 === 0) answer();
        const [now, passed] = [clock.now(), local - lastLocal];
        mostOff = Math.max(mostOff, Math.abs(now - last - passed) - 0.1 * passed);
        [last, lastLocal] = [now, local];
      }

      expect(mostOff).to.be.at.most(1);
      expect(Math.abs(clock.now() - truth())).to.be.at.most(1_100);
    });
  }

  it('fires at or after the deadline, unless cancelled', async () => {
    const real = new ServerClock();
    real.observe(httpDate(NOON), performance.now());
    const alive = setInterval(() => undefined, 1_000);
    const calls: string[] = [];
    const moment = real.now() + 30;

    real.at(moment - 10, () => {
      calls.push('off');
    })();
    const at = await new Promise<number>((resolve) => {
      real.at(moment, () => {
        resolve(real.now());
      });
    });
    clearInterval(alive);

    expect(at).to.be.at.least(moment);
    expect(calls).to.deep.equal([]);
  });
});
