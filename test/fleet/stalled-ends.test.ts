import { expect } from 'chai';
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../src/contracts/clock.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { Heartbeat } from '../../src/fleet/heartbeat.ts';
import { endlessChannel } from '../../src/fleet/link-channel.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { turns } from '../support/harness/turns.ts';

/** The other end, which answers each PING at once, whatever this thread does, and counts them. */
const OTHER_END = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:http2').createServer();
  const count = () => {
    Atomics.add(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  };
  // the answer is sent once all that came with the PING was read
  server.on('session', (session) => session.on('ping', () => setImmediate(count)));
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

/** Has the event loop of this process do nothing, as while it is stopped or collects garbage. */
const standStill = (forMs: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
};

describe('a link whose own end stood still', () => {
  let other: Worker;
  let answered: Int32Array;
  let session: ClientHttp2Session;
  let told: string[];
  let heartbeat: Heartbeat;
  let answers: number;

  beforeEach(async () => {
    told = [];
    answers = 0;
    answered = new Int32Array(new SharedArrayBuffer(4));
    other = new Worker(OTHER_END, { eval: true, workerData: answered });
  });
  afterEach(async () => {
    heartbeat.stop();
    session.destroy();
    await other.terminate();
  });

  /** Has this thread do nothing until the other end has answered so many PINGs. */
  const standStillUntilAnswered = (pings: number): void => {
    for (let seen = 0; seen < pings; seen = Atomics.load(answered, 0))
      if (Atomics.wait(answered, 0, seen, NEVER_COMES_MS) === 'timed-out')
        throw new Error(`${seen} PINGs are answered`);
  };

  const link = async (clock: Clock): Promise<void> => {
    const [port] = (await once(other, 'message')) as [number];
    const socket = connect(port, '127.0.0.1');
    session = connectHttp2('http://worker', { createConnection: () => socket });
    await once(session, 'remoteSettings');
    heartbeat = new Heartbeat(session, {
      ...{ clock, channel: endlessChannel(socket), heard: () => undefined },
      answered: () => (answers += 1),
      dead: (why) => void told.push(why),
    });
    heartbeat.start();
    await eventually(() => answers === 1, 'the first PING is answered');
  };

  for (const [when, before] of [
    ['before the PING had left', 0],
    ['once the PING had left', 1],
  ] as const)
    it(`for longer than a look, ${when}, is not silent`, async () => {
      await link(systemClock());
      heartbeat.probe(() => void told.push('silent'));
      await turns(before);
      standStill(1_600);
      await eventually(() => answers >= 2, 'it is answered');
      expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
    });

  it('until just before it would be dead is not, by what lies in its socket', async () => {
    const clock = new TestClock();
    await link(clock);
    clock.advance(14_999); // two PINGs after the first
    await turns(1);
    standStillUntilAnswered(3);
    clock.advance(1);
    await turns();
    expect(told).to.deep.equal([]);
  });
});
