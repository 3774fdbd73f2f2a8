import { expect } from 'chai';
import type { Http2Session } from 'node:http2';
import { Heartbeat } from '../../src/fleet/heartbeat.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('a heartbeat', () => {
  const setUp = () => {
    const clock = new TestClock();
    const told: string[] = [];
    const session = { ping: () => true } as unknown as Http2Session;
    const heartbeat = new Heartbeat(session, {
      clock,
      heard: () => undefined,
      dead: () => void told.push('dead'),
    });
    heartbeat.start();
    return { clock, told, heartbeat };
  };

  it('finds a link silent of which nothing comes, and does not cut it yet', () => {
    const { clock, told, heartbeat } = setUp();
    heartbeat.probe(() => void told.push('silent'));
    heartbeat.probe(() => void told.push('silent too'));
    const callOff = heartbeat.probe(() => void told.push('of no interest'));
    callOff();
    clock.advance(1_499);
    expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
    clock.advance(1);
    expect([told, heartbeat.isSilent]).to.deep.equal([['silent', 'silent too'], true]);
    heartbeat.heard();
    expect(heartbeat.isSilent).to.equal(false);
  });

  it('lets a slow link be that says anything, whatever it owes', () => {
    const { clock, told, heartbeat } = setUp();
    for (let second = 0; second < 60; second += 1) {
      heartbeat.probe(() => void told.push('silent'));
      clock.advance(1_000);
      heartbeat.heard(); // part of an answer, and never that to a PING
    }
    expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
  });

  it('finds a link dead of which nothing came for 15 s', () => {
    const { clock, told } = setUp();
    clock.advance(14_999);
    expect(told).to.deep.equal([]);
    clock.advance(1);
    expect(told).to.deep.equal(['dead']);
  });

  it('finds it dead after 15 s also where its answers took their time', () => {
    const { clock, told, heartbeat } = setUp();
    clock.advance(50);
    heartbeat.heard();
    clock.advance(14_999);
    expect(told).to.deep.equal([]);
    clock.advance(1);
    expect(told).to.deep.equal(['dead']);
  });
});
