import { expect } from 'chai';
import type { Http2Session } from 'node:http2';
import { Heartbeat } from '../../src/fleet/link/heartbeat.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { turns } from '../support/harness/turns.ts';

describe('a heartbeat', () => {
  const setUp = () => {
    const clock = new TestClock();
    const told: string[] = [];
    let answer = (): void => undefined;
    const ping = (answered: (error: null, tookMs: number) => void): boolean => {
      answer = () => answered(null, 50);
      return true;
    };
    const session = { ping } as unknown as Http2Session;
    let received = 0;
    let gone = false;
    let written = 0;
    let moved = 0;
    const heartbeat = new Heartbeat(session, {
      clock,
      channel: {
        received: () => received,
        isGone: () => gone,
        written: () => written,
        moved: () => Promise.resolve(moved),
      },
      heard: () => undefined,
      dead: () => void told.push('dead'),
    });
    heartbeat.start();
    const comes = (): void => void (received += 1);
    const answers = (): void => {
      comes();
      answer();
    };
    const writes = (bytes: number): void => void (written += bytes);
    const acknowledges = (): void => void (moved += 1);
    const goes = (): void => void (gone = true);
    return { clock, told, heartbeat, comes, answers, goes, writes, acknowledges };
  };

  it('reports a silent link, and does not close it yet', () => {
    const { clock, told, heartbeat, comes } = setUp();
    heartbeat.probe(() => void told.push('silent'));
    heartbeat.probe(() => void told.push('silent too'));
    const callOff = heartbeat.probe(() => void told.push('of no interest'));
    callOff();
    clock.advance(1_499);
    expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
    clock.advance(1);
    expect([told, heartbeat.isSilent]).to.deep.equal([['silent', 'silent too'], true]);
    comes();
    expect(heartbeat.isSilent).to.equal(false);
  });

  it('accepts a slow link that still sends anything', () => {
    const { clock, told, heartbeat, comes } = setUp();
    for (let second = 0; second < 60; second += 1) {
      heartbeat.probe(() => void told.push('silent'));
      clock.advance(1_000);
      comes(); // part of an answer, and never that to a PING
    }
    expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
  });

  it('reports a link as dead after 15 s of silence', () => {
    const { clock, told } = setUp();
    clock.advance(15_000);
    expect(told).to.deep.equal([]);
    clock.advance(1_000);
    expect(told).to.deep.equal(['dead']);
  });

  it('reports a link as dead within 16 s even after slow answers', () => {
    const { clock, told, answers } = setUp();
    clock.advance(950);
    answers();
    clock.advance(15_000);
    expect(told).to.deep.equal([]);
    clock.advance(1_000);
    expect(told).to.deep.equal(['dead']);
  });

  it('keeps a link whose own end was paused for less than the dead timeout', () => {
    const { clock, told, answers } = setUp();
    clock.advance(4_999); // the next PING has not left
    clock.pause(14_999);
    clock.advance(9_000); // what was lost on the way is sent again
    expect(told).to.deep.equal([]);
    answers();
    clock.advance(15_000);
    expect(told).to.deep.equal([]);
  });

  it('reports a link as dead that stays silent after a pause of its own process', () => {
    const { clock, told } = setUp();
    clock.advance(5_000);
    clock.pause(60_000);
    expect(told).to.deep.equal([]);
    clock.advance(10_000);
    expect(told).to.deep.equal(['dead']);
  });

  for (const waitedMs of [0, 1_499])
    it(`does not report a link as silent for its own pause after ${waitedMs} ms of a probe`, () => {
      const { clock, told, heartbeat, comes } = setUp();
      heartbeat.probe(() => void told.push('silent'));
      clock.advance(waitedMs);
      clock.pause(1_600);
      clock.advance(1_000);
      comes();
      clock.advance(10_000);
      expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
    });

  it('reports a link as silent that stays silent for a whole probe after a pause', () => {
    const { clock, told, heartbeat } = setUp();
    heartbeat.probe(() => void told.push('silent'));
    clock.advance(1_499);
    clock.pause(1_600);
    clock.advance(1_499);
    expect(told).to.deep.equal([]);
    clock.advance(1);
    expect([told, heartbeat.isSilent]).to.deep.equal([['silent'], true]);
  });

  it('extends the time for an answer behind other bytes', () => {
    const { clock, told, heartbeat, answers, writes } = setUp();
    writes(64 * 1024);
    heartbeat.probe(() => void told.push('silent'));
    clock.advance(4_999);
    expect(told).to.deep.equal([]);
    clock.advance(1);
    expect(told).to.deep.equal(['silent']);
    answers(); // to the last PING, behind all of them
    expect(heartbeat.isSilent).to.equal(false);
    heartbeat.probe(() => void told.push('silent again'));
    clock.advance(1_500);
    expect(told).to.deep.equal(['silent', 'silent again']);
  });

  it("counts the kernel's acknowledgements, but only on a link with much to send", async () => {
    const { clock, told, heartbeat, writes, acknowledges } = setUp();
    const pass = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        acknowledges();
        clock.advance(1_000);
        await turns();
      }
    };
    writes(64 * 1024);
    heartbeat.probe(() => void told.push('silent'));
    await pass(30);
    expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
    clock.advance(16_000); // nothing is acknowledged any more
    await turns();
    expect(told).to.deep.equal(['dead']);

    const idle = setUp();
    idle.writes(100);
    for (let second = 0; second < 16; second += 1) {
      idle.acknowledges(); // PINGs of ours
      idle.clock.advance(1_000);
      await turns();
    }
    expect(idle.told).to.deep.equal(['dead']);
  });

  it('reports a link as dead within a second if its connection is closed', () => {
    const { clock, told, goes } = setUp();
    goes();
    clock.advance(1_000);
    expect(told).to.deep.equal(['dead']);
  });
});
