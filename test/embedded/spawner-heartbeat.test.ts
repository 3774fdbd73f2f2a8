import { expect } from 'chai';
import type { Clock } from '../../src/contracts/clock.ts';
import { BEAT_MS, Heartbeat } from '../../src/embedded/driver/spawner-heartbeat.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe("a spawner's heartbeat", () => {
  const started = (clock: Clock): { readonly heartbeat: Heartbeat; readonly told: string[] } => {
    const told: string[] = [];
    const heartbeat = new Heartbeat(clock, {
      ask: () => void told.push('ask'),
      silent: () => void told.push('silent'),
      missed: () => {},
      back: () => void told.push('back'),
      givenUp: () => void told.push('given up'),
    });
    heartbeat.start();
    return { heartbeat, told };
  };
  const aHeartbeat = () => {
    const clock = new TestClock();
    return { clock, ...started(clock) };
  };

  it('is requested every half second while the spawner answers', () => {
    const { clock, heartbeat, told } = aHeartbeat();
    for (let beat = 0; beat < 100; beat += 1) {
      clock.advance(BEAT_MS);
      heartbeat.heard();
    }
    expect(told).to.deep.equal(Array.from({ length: 100 }, () => 'ask'));
  });

  it('shows within 3 s that the spawner is silent or has recovered', () => {
    const { clock, heartbeat, told } = aHeartbeat();
    clock.advance(3_000);
    expect(heartbeat.silent).to.equal(true);
    expect(told.slice(0, 2)).to.deep.equal(['ask', 'silent']);
    heartbeat.heard();
    expect(heartbeat.silent).to.equal(false);
    clock.advance(BEAT_MS);
    expect(told.slice(-2)).to.deep.equal(['back', 'ask']);
  });

  it('gives up once after 20 s of silence, and then stops', () => {
    const { clock, told } = aHeartbeat();
    clock.advance(19_000);
    expect(told).to.not.include('given up');
    clock.advance(60_000);
    expect(told.filter((what) => what === 'given up')).to.have.lengthOf(1);
    expect(clock.waiting).to.equal(0);
  });

  it('ignores a stop of its own process for minutes', () => {
    const due: (() => void)[] = [];
    let now = 0;
    // Timers of a process that was stopped come once each, late, before anything is read.
    const late = {
      now: () => now,
      at: (_: number, act: () => void) => {
        due.push(act);
        return () => {};
      },
    };
    const { heartbeat, told } = started(late);
    for (let stop = 0; stop < 10; stop += 1) {
      now += 120_000;
      due.shift()?.();
      now += 120_000;
      due.shift()?.();
      heartbeat.heard();
    }
    expect(told).to.deep.equal(Array.from({ length: 10 }, () => 'ask'));
  });
});
