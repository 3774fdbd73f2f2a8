import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { eventually } from '../support/harness/eventually.ts';
import { noRedis, startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { Dice } from '../support/builders/hostile-values.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { BadLink } from '../support/chaos/faults/bad-link.ts';
import { ClockJump, FakeClock, noFakeTime } from '../support/chaos/faults/clock-jump.ts';
import { FailedOver } from '../support/chaos/faults/failed-over.ts';
import { Flushed } from '../support/chaos/faults/flushed.ts';
import { Killed } from '../support/chaos/faults/killed.ts';
import { RestartedWithoutRedis } from '../support/chaos/faults/restarted-without-redis.ts';
import { StalledHandOver } from '../support/chaos/faults/stalled-hand-over.ts';
import { Stopped } from '../support/chaos/faults/stopped.ts';

describe('faults of Redis', () => {
  let redis: RedisServer;

  before(async function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
    redis = await startRedis();
  });
  after(() => redis?.stop());
  beforeEach(() => redis.client.set('a', '1'));

  it('killed, it answers nothing, and knows what it knew once it is back', async () => {
    const fault = new Killed(redis, { what: 'Redis', others: 'wait', lastsMs: 0 });
    await fault.begin();
    const answer = redis.client.get('a'); // waits for the connection
    expect(await Promise.race([answer, silence(SILENCE_MS)])).to.equal('silence');
    await fault.end();
    expect(await answer).to.equal('1');
  });

  it('stopped, it answers nothing, and then what it was asked', async () => {
    const fault = new Stopped(
      (signal) => {
        redis.signal(signal);
      },
      { what: 'Redis', others: 'wait', lastsMs: 0 },
    );
    await fault.begin();
    const answer = redis.client.get('a');
    expect(await Promise.race([answer, silence(SILENCE_MS)])).to.equal('silence');
    await fault.end();
    expect(await answer).to.equal('1');
  });

  it('replaced by one that lacks the last moment, it knows what was before, and not what came after', async () => {
    await redis.client.set('before', '1');
    // While the disk is slow to take what was written, Redis answers before its file has the next
    // write.
    await eventually(
      async () => /\baof_buffer_length:0\r/.test(await redis.client.info('persistence')),
      'the file has what was written',
    );
    let written: Promise<unknown> = Promise.resolve();
    const replaceable = {
      keepCopy: () => redis.keepCopy(),
      kill: async () => {
        await written; // else it is asked for again of the one that comes
        await redis.kill();
      },
      restartFromCopy: () => redis.restartFromCopy(),
    };
    const fault = new FailedOver(replaceable, { lacksMs: 0, lastsMs: 0 });
    const begun = fault.begin();
    written = redis.client.set('after', '1');
    await begun;
    await fault.end();
    expect(await redis.client.get('before')).to.equal('1');
    expect(await redis.client.get('after')).to.equal(null);
  });

  it('stopped while a replica leaves and comes back, it goes on', async () => {
    const told: string[] = [];
    const tell = (what: string) => async (): Promise<void> => {
      told.push(what);
    };
    const fault = new StalledHandOver({
      n: 0,
      replica: { leave: tell('leaves'), join: tell('joins') },
      redis,
      dice: new Dice(1),
    });
    await fault.begin();
    await fault.end();
    expect(told).to.deep.equal(['leaves', 'joins']);
    expect(await redis.client.get('a')).to.equal('1');
  });

  it('away, it has a replica start without it', async () => {
    const told: string[] = [];
    const replica = {
      kill: async () => {
        told.push('killed');
      },
      restart: async () => {
        told.push(
          `starts, and Redis says ${await Promise.race([redis.client.get('a'), silence(SILENCE_MS)])}`,
        );
      },
    };
    const fault = new RestartedWithoutRedis({ n: 0, replica, redis, lastsMs: 0 });
    await fault.begin();
    await eventually(() => told.length === 2, 'it starts');
    await fault.end();
    expect(told).to.deep.equal(['killed', 'starts, and Redis says silence']);
    expect(await redis.client.get('a')).to.equal('1');
  });

  it('flushed, it knows nothing', async () => {
    const fault = new Flushed(redis.client);
    await fault.begin();
    await fault.end();
    expect(await redis.client.get('a')).to.equal(null);
  });
});

describe('a bad link', () => {
  let echo: Server;
  let proxy: FaultProxy;
  let port: number;
  const clients: Socket[] = [];

  beforeEach(async () => {
    echo = createServer((socket) => {
      socket.on('error', () => undefined).pipe(socket);
    });
    await new Promise<void>((resolve) => {
      echo.listen(0, '127.0.0.1', resolve);
    });
    proxy = new FaultProxy({ host: '127.0.0.1', port: (echo.address() as AddressInfo).port });
    port = await proxy.start();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await proxy.stop();
    await new Promise((resolve) => {
      echo.close(resolve);
    });
  });

  /** What comes back of one word: the word, `cut`, or `silence` where nothing comes for so long. */
  const said = async (patienceMs = ANSWER_MS): Promise<string> => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    const cut = new Promise<string>((resolve) => {
      client
        .on('error', () => undefined)
        .once('close', () => {
          resolve('cut');
        });
    });
    client.write('word');
    return await Promise.race([
      once(client, 'data').then(
        ([chunk]) => String(chunk),
        () => 'cut',
      ),
      cut,
      silence(patienceMs),
    ]);
  };

  for (const [trouble, outcome] of [
    ['half-open', 'silence'],
    ['answers cut', 'cut'],
    ['slow', 'silence'],
  ] as const) {
    it(`that is ${trouble} gives ${outcome}, and works again after`, async () => {
      const fault = new BadLink(proxy, { trouble, victim: 'a link', hinders: 0, lastsMs: 0 });
      await fault.begin();
      expect(await said(outcome === 'silence' ? SILENCE_MS : ANSWER_MS)).to.equal(outcome);
      await fault.end();
      expect(await said()).to.equal('word');
    });
  }

  it('that was slow brings everything in its order, also what came once it was well', async () => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    let heard = '';
    client.on('data', (chunk: Buffer) => {
      heard += chunk.toString();
    });
    const fault = new BadLink(proxy, { trouble: 'slow', victim: 'a link', hinders: 0, lastsMs: 0 });
    await fault.begin();
    client.write('first ');
    await eventually(() => client.bytesWritten === 6, 'it is sent');
    await silence(SILENCE_MS);
    await fault.end();
    client.write('second');
    await eventually(() => heard.length === 12, 'both have come back');
    expect(heard).to.equal('first second');
  });

  it('that is cut ends every connection, again and again, and works again after', async () => {
    const fault = new BadLink(proxy, { trouble: 'cut', victim: 'a link', hinders: 0, lastsMs: 0 });
    await fault.begin();
    for (let round = 0; round < 2; round++) {
      const client = connect(port, '127.0.0.1').on('error', () => undefined);
      clients.push(client);
      let isClosed = false;
      client.once('close', () => {
        isClosed = true;
      });
      await eventually(() => isClosed, 'the connection is cut');
    }
    await fault.end();
    expect(await said()).to.equal('word');
  });
});

describe('a clock that jumps', () => {
  let clock: FakeClock;
  let child: ChildProcess;

  before(function () {
    if (noFakeTime !== undefined) skipBecause(this, noFakeTime);
  });
  beforeEach(() => {
    clock = new FakeClock();
  });
  afterEach(() => {
    child.kill('SIGKILL');
    clock.remove();
  });

  it('is an hour ahead in one process, whose monotonic clock goes on, and comes back', async function () {
    child = spawn(
      process.execPath,
      ['-e', 'setInterval(() => console.log(Date.now() + " " + performance.now()), 50)'],
      { env: { ...process.env, ...clock.env }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    if (!child.stdout) throw new Error('it has an output');
    let last = { wall: 0, monotonic: 0 };
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [wall = 0, monotonic = 0] = line.split(' ').map(Number);
      last = { wall, monotonic };
    });
    const aheadMs = (): number => last.wall - Date.now();
    await eventually(() => Math.abs(aheadMs()) < 60_000, 'the clock is right');
    const fault = new ClockJump(clock, { victim: 'a process', seconds: 3_600, lastsMs: 0 });
    await fault.begin();
    await eventually(() => Math.abs(aheadMs() - 3_600_000) < 60_000, 'an hour ahead');
    expect(last.monotonic).to.be.below(60_000);
    await fault.end();
    await eventually(() => Math.abs(aheadMs()) < 60_000, 'right again');
  });
});

/** As far as a word may be there and back on a busy machine. */
const ANSWER_MS = 30_000;
/** Much longer than it takes there and back on an idle one. */
const SILENCE_MS = 300;

const silence = (afterMs: number): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(resolve, afterMs, 'silence').unref();
  });
