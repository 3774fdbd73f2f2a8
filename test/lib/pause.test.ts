import { expect } from 'chai';
import { pause } from '../../src/contracts/clock.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('a pause', () => {
  it('ends at its time', async () => {
    const clock = new TestClock();
    const paused = pause(clock, 10, new AbortController().signal);
    clock.advance(10);
    await paused;
  });

  it('ends when it is aborted, and leaves no timer', async () => {
    const clock = new TestClock();
    const abort = new AbortController();
    const paused = pause(clock, 10, abort.signal);
    abort.abort();
    await paused;
    await pause(clock, 10, abort.signal);
    expect(clock.waiting).to.equal(0);
  });
});
