import { expect } from 'chai';
import { Liveness } from '../../src/http/terminal/liveness.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe("the liveness of a terminal's peer", () => {
  let clock: TestClock;
  let said: string[];
  let liveness: Liveness;
  beforeEach(() => {
    clock = new TestClock();
    said = [];
    const at = clock.now();
    const note = (what: string) => (): void =>
      void said.push(`${what} ${(clock.now() - at) / 1_000}`);
    liveness = new Liveness(clock, {
      ping: note('ping'),
      dead: note('dead'),
      stalled: note('stalled'),
    });
    liveness.start();
  });

  it('sends pings every 20 s while they are answered', () => {
    for (let i = 0; i < 3; i += 1) {
      clock.advance(20_000);
      liveness.heard('pong');
    }
    expect(said).to.deep.equal(['ping 20', 'ping 40', 'ping 60']);
  });

  it('is dead 10 s after an unanswered ping, and reported once', () => {
    clock.advance(600_000);
    expect(said).to.deep.equal(['ping 20', 'dead 30']);
  });

  it('counts any frame as an answer', () => {
    clock.advance(25_000);
    liveness.heard('frame');
    clock.advance(10_000);
    expect(said).to.deep.equal(['ping 20']);
  });

  it('is stalled 60 s after output began to wait', () => {
    clock.advance(5_000);
    liveness.congested();
    clock.advance(600_000);
    expect(said).to.deep.equal(['stalled 65']);
  });

  it('counts from the last part of the waiting output that was read', () => {
    liveness.congested();
    clock.advance(50_000);
    liveness.progressed();
    clock.advance(59_999);
    expect(said).to.deep.equal([]);
    clock.advance(1);
    expect(said).to.deep.equal(['stalled 110']);
  });

  it('does not count input as progress of the output', () => {
    liveness.congested();
    clock.advance(50_000);
    liveness.heard('frame');
    clock.advance(10_000);
    expect(said).to.deep.equal(['stalled 60']);
  });

  it('is dead, not stalled, with little output in transit', () => {
    liveness.sent(64 * 1024);
    clock.advance(30_000);
    expect(said).to.deep.equal(['ping 20', 'dead 30']);
  });

  it('is stalled, not dead, with much output in transit', () => {
    liveness.sent(64 * 1024 + 1);
    clock.advance(80_000);
    expect(said).to.deep.equal(['ping 20', 'stalled 80']);
  });

  it('learns from a pong what was read before it', () => {
    liveness.sent(1_000_000);
    clock.advance(20_000);
    liveness.heard('pong');
    clock.advance(30_000);
    expect(said).to.deep.equal(['ping 20', 'ping 40', 'dead 50']);
  });

  it('ignores silence while the daemon does not read, and allows a fresh 10 s afterwards', () => {
    clock.advance(21_000);
    liveness.deaf();
    clock.advance(300_000);
    expect(said).to.deep.equal(['ping 20']);
    liveness.listening();
    clock.advance(9_999);
    expect(said).to.deep.equal(['ping 20']);
    clock.advance(20_000);
    expect(said).to.have.length(2);
    expect(said[1]).to.match(/^dead /);
  });

  it('leaves no timer behind', () => {
    liveness.stop();
    expect(clock.waiting).to.equal(0);
  });
});
