import { expect } from 'chai';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { v7 } from 'uuid';
import { ProcessesFull, type ProcessOrder } from '../../../src/contracts/processes.ts';
import { EmbeddedProcesses } from '../../../src/embedded/driver/processes.ts';
import { NotJoinable } from '../../../src/contracts/sandbox-driver.ts';
import { AgentCall } from '../../../src/contracts/agent/agent-call.ts';
import { piecesOf } from '../../../src/contracts/agent/process-output.ts';
import { connectHolder } from '../../../src/embedded/spawner/processes/holder-socket.ts';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import * as bounds from '../../../src/embedded/spawner/processes/bounds.ts';
import { FIRST_BYTES, UNIT_BYTES } from '../../../src/embedded/spawner/processes/holder.ts';
import { Holders } from '../../../src/embedded/spawner/processes/holders.ts';
import { MemoryShares } from '../../../src/embedded/spawner/processes/memory-shares.ts';
import { StartRefused } from '../../../src/embedded/spawner/processes/process-messages.ts';
import {
  processesOf,
  readProcessStat,
} from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import * as model from '../../../src/model/process.ts';
import { buildLauncher, LAUNCHER } from '../../support/harness/a-spawned-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { killIfAlive } from '../../support/harness/kill-if-alive.ts';
import { OutputReading } from '../../support/harness/output-reading.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

/** Whom a suite that runs as root takes for the sandbox's user. */
const UID = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0);
const SANDBOX = 'box';

/** A sandbox without isolation, whose first process sleeps, and the holders of its processes. */
class Bare {
  readonly home = mkdtempSync(join(tmpdir(), 'sandpool-holders-'));
  readonly folder = mkdtempSync(join(tmpdir(), 'sandpool-sockets-'));
  readonly init: ChildProcess;
  readonly lost: string[] = [];
  readonly warnings: unknown[] = [];
  shares = new MemoryShares();
  cgroups: readonly string[] = [];
  startDeadlineMs: number | undefined;
  holders: Holders;
  readonly #pools: LauncherPool[] = [];

  constructor() {
    chmodSync(this.home, 0o777);
    this.init = spawn('sleep', ['100000'], { stdio: 'ignore', uid: UID, gid: UID });
    this.holders = this.#begin();
  }

  /** The next spawner takes over. */
  async again(bound?: { readonly tenant: number; readonly all: number }): Promise<void> {
    this.next(bound);
    await this.holders.adopt(new Set([SANDBOX]));
  }

  /** The next spawner, which has not looked for holders. */
  next(bound?: { readonly tenant: number; readonly all: number }): void {
    this.holders.stop();
    this.shares = new MemoryShares(bound);
    this.holders = this.#begin();
  }

  readonly processes = new EmbeddedProcesses({
    spawner: {
      hold: async (id, order) => {
        try {
          await this.holders.start(id, order);
          return undefined;
        } catch (error) {
          if (error instanceof StartRefused) return error.refusal;
          throw error;
        }
      },
    },
    isRunning: () => true,
    folder: this.folder,
    clock: systemClock(),
  });

  async close(): Promise<void> {
    this.init.kill('SIGKILL');
    const left = (): readonly string[] =>
      readdirSync(this.folder).flatMap((id) => readdirSync(join(this.folder, id)));
    await eventually(() => left().length === 0, 'all holders end with their sandbox');
    this.holders.stop();
    for (const pool of this.#pools) pool.stop();
    for (const folder of [this.home, this.folder]) rmSync(folder, { recursive: true });
  }

  #begin(): Holders {
    const pool = new LauncherPool(() => LAUNCHER, 'hold');
    this.#pools.push(pool);
    const { pid = 0 } = this.init;
    return new Holders({
      launchers: pool,
      placeOf: () => ({
        init: { pid, startTime: readProcessStat(pid)?.startTime ?? '' },
        user: undefined,
        cgroups: this.cgroups,
        env: {},
        workingDir: '/',
        bare: { home: this.home, uid: UID },
      }),
      folder: this.folder,
      lost: (_id, why) => this.lost.push(why),
      log: { warn: (_event, fields) => this.warnings.push(fields) },
      shares: this.shares,
      startDeadlineMs: this.startDeadlineMs,
    });
  }
}

describe('holders of processes on one machine', () => {
  let bare: Bare;

  before(() => buildLauncher());
  beforeEach(() => {
    bare = new Bare();
  });
  afterEach(() => bare.close());

  const start = (script: string, part: Partial<ProcessOrder> = {}): Promise<model.ProcessFact> =>
    bare.processes.start(SANDBOX, {
      processId: v7(),
      tenant: 'blue',
      argv: ['sh', '-c', script],
      stdin: false,
      env: { PATH: '/usr/bin:/bin' },
      ...part,
    });
  const read = ({ processId }: model.ProcessFact): OutputReading =>
    new OutputReading((signal) =>
      bare.processes.output(SANDBOX, processId, { pace: false, signal }),
    );
  const holderOf = (fact: model.ProcessFact): number => readProcessStat(fact.pid)?.parent ?? 0;
  const free = (): number => {
    let bytes = 0;
    while (bare.shares.take('blue', 1 << 10) === undefined) bytes += 1 << 10;
    bare.shares.release('blue', bytes);
    return bytes;
  };

  it('have the bounds of the model', () => {
    expect(model).to.include(bounds);
  });

  for (const [what, left] of [
    ['floods', 'yes'],
    ['drips', 'while echo x; do sleep 0.005; done'],
  ] as const)
    it(`report the end of a process even if a leftover process ${what} its output`, async () => {
      const ended = await start(`(${left}) & exit 3`);
      expect(await read(ended).end()).to.include({ status: 'Exited', exitCode: 3 });

      const removed = await start(`(${left}) & exit 3`);
      await bare.processes.remove(SANDBOX, removed.processId);
      const known = await bare.processes.list(SANDBOX);
      expect(known.map(({ processId }) => processId)).to.deep.equal([ended.processId]);
    });

  it('read all output after a stop, and do not count a process that ended in time as timed out', async () => {
    const ended = await start('sleep 0.5; head -c 60000 /dev/zero; exit 3', { timeoutMs: 2_000 });
    const holder = holderOf(ended);
    process.kill(holder, 'SIGSTOP');
    await eventually(() => readProcessStat(ended.pid)?.state === 'Z', 'it has ended');
    const stopped = performance.now();
    await eventually(() => performance.now() - stopped > 2_500, 'its time is over');
    process.kill(holder, 'SIGCONT');
    const reading = read(ended);

    expect((await reading.end()).exitCode).to.equal(3);
    expect(reading.size).to.equal(60_000);
  });

  it('are counted with their memory and commands, until they are removed', async () => {
    const all = free();
    const fact = await start('exec sleep 1000', { tag: 'x'.repeat(20 << 10) });
    const taken = all - free();
    expect(taken).to.be.within(FIRST_BYTES + (20 << 10), FIRST_BYTES + (22 << 10));
    await bare.processes.remove(SANDBOX, fact.processId);
    await eventually(() => free() === all, 'all is free again');
  });

  it('count memory for output, also with the next spawner', async () => {
    const all = free();
    const fact = await start('head -c 200000 /dev/zero; read go; head -c 2000000 /dev/zero', {
      stdin: true,
    });
    await eventually(() => all - free() > FIRST_BYTES + 2 * UNIT_BYTES, 'it has taken more');
    const before = all - free();
    await bare.again();
    expect(all - free()).to.be.within(before - (4 << 10), before + (4 << 10));

    await bare.processes.closeInput(SANDBOX, fact.processId);
    const reading = read(fact);
    await reading.end();
    expect(reading.size + reading.dropped).to.equal(2_200_000);
    expect(all - free()).to.be.below(FIRST_BYTES + 18 * UNIT_BYTES);
  });

  it('are found by a repeated start if they began to listen after the spawner had looked', async () => {
    const all = free();
    const fact = await start('exec sleep 1000');
    bare.next();
    const { processId } = fact;

    expect(await start('exec sleep 2000', { processId })).to.deep.equal(fact);
    expect(all - free()).to.be.above(FIRST_BYTES);
    await bare.processes.remove(SANDBOX, processId);
    await eventually(() => free() === all, 'all is free again');
    expect(bare.lost).to.deep.equal([]);
  });

  it('are found by the next spawner even if readers take all of their places', async () => {
    const fact = await start('exec sleep 1000');
    bare.next();
    const readers = Array.from({ length: 160 }, () =>
      connectHolder(join(bare.folder, SANDBOX), fact.processId).on('error', () => {}),
    );
    const answered = new Set<unknown>();
    for (const reader of readers) {
      reader.write(Buffer.from('\0\0\0\x07output\0', 'latin1'));
      for (const event of ['data', 'close']) reader.once(event, () => answered.add(reader));
    }
    await eventually(() => answered.size === readers.length, 'all of them are answered');
    await bare.holders.adopt(new Set([SANDBOX]));
    expect(bare.lost).to.deep.equal([]);
    for (const reader of readers) reader.destroy();
    expect(await bare.processes.find(SANDBOX, fact.processId)).to.deep.equal(fact);
  });

  it('keep less output once the share of memory is used up', async () => {
    await bare.again({ tenant: FIRST_BYTES + 3 * UNIT_BYTES, all: 1 << 30 });
    const fact = await start('head -c 2000000 /dev/zero; printf end');
    const ended = async (): Promise<boolean> =>
      (await bare.processes.find(SANDBOX, fact.processId))?.status === 'Exited';
    await eventually(ended, 'it has ended');
    const reading = read(fact);
    await reading.end();

    expect(reading.size).to.be.within(1, 4 << 16);
    expect(reading.size + reading.dropped).to.equal(2_000_003);
    expect(reading.text('stdout').endsWith('end')).to.equal(true);
  });

  it('are refused once the share of memory is used up, unless an ended one can be removed', async () => {
    await bare.again({ tenant: FIRST_BYTES + (8 << 10), all: 1 << 30 });
    const first = await start('exec sleep 1000');
    expect(await rejection(start('true')))
      .to.be.instanceOf(ProcessesFull)
      .and.include({
        of: 'tenant',
      });
    await start('true', { tenant: 'red' });
    await bare.processes.signal(SANDBOX, first.processId, 'KILL');
    await read(first).end();

    const second = await start('exec sleep 1000');
    const known = await bare.processes.list(SANDBOX);
    expect(known.map(({ processId }) => processId)).to.include(second.processId);
    await eventually(
      async () => (await bare.processes.find(SANDBOX, first.processId)) === undefined,
      'the first is forgotten',
    );
  });

  it('are limited by the size of their list of commands, without ended ones', async () => {
    const argv = ['sh', '-c', 'exec sleep 1000', ...Array.from({ length: 15 }, () => LONG)];
    const first = await start('', { argv });
    await start('', { argv });
    expect(await rejection(start('', { argv })))
      .to.be.instanceOf(ProcessesFull)
      .and.include({
        of: 'sandbox',
      });
    await bare.processes.signal(SANDBOX, first.processId, 'KILL');
    await read(first).end();
    let third: model.ProcessFact | undefined;
    await eventually(async () => {
      // The holder reports the end in a record of 2 MB.
      third = await start('', { argv }).catch((error: unknown) => {
        if (error instanceof ProcessesFull) return undefined;
        throw error;
      });
      return third !== undefined;
    }, 'its place is free');
    await eventually(
      async () => (await bare.processes.find(SANDBOX, first.processId)) === undefined,
      'the first is forgotten',
    );
    expect((await bare.processes.find(SANDBOX, third?.processId ?? ''))?.status).to.equal(
      'Running',
    );
  });

  it('release variables and arguments once the program runs', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'only root can read the memory of a holder');
    const dirty = (fact: model.ProcessFact): number =>
      Number(
        /Private_Dirty:\s+(\d+)/.exec(
          readFileSync(`/proc/${holderOf(fact)}/smaps_rollup`, 'utf8'),
        )?.[1],
      );
    const plain = await start('exec sleep 1000');
    const env = { PATH: '/usr/bin:/bin', ONE: LONG, TWO: LONG, THREE: LONG };
    const spent = await start('exec sleep 1000', { env });
    expect(dirty(spent)).to.be.below(dirty(plain) + 100);
  });

  it('are reported as lost if they are killed, and end their processes', async () => {
    const fact = await start('exec sleep 1000');
    process.kill(holderOf(fact), 'SIGKILL');
    await eventually(() => bare.lost.length > 0, 'the loss is reported');
    await eventually(() => readProcessStat(fact.pid)?.state !== 'S', 'its process is killed');
    expect(await bare.processes.list(SANDBOX)).to.deep.equal([]);
  });

  it('refuse calls while too many wait for them', async () => {
    const fact = await start('exec sleep 1000');
    const holder = holderOf(fact);
    process.kill(holder, 'SIGSTOP');
    const folder = join(bare.folder, SANDBOX);
    let isFull = false;
    const callers: Socket[] = [];
    while (!isFull) {
      const caller = connectHolder(folder, fact.processId).on('error', () => {
        isFull = true;
      });
      callers.push(caller);
      await setImmediate();
    }
    const error = await rejection(bare.processes.find(SANDBOX, fact.processId));
    for (const socket of callers) socket.destroy();
    process.kill(holder, 'SIGCONT');

    expect(error).to.be.instanceOf(NotJoinable);
  });

  it('hang up a bound terminal once its reader leaves, and kill processes that ignore it', async () => {
    const processId = '.bound';
    const argv = ['sh', '-c', "trap '' HUP; echo $$; while :; do sleep 0.1; done"];
    const told = JSON.stringify({ argv, startedAt: 1 });
    const order = { processId, tenant: 'blue', argv, stdin: true, told, bound: true } as const;
    await bare.holders.start(SANDBOX, { ...order, tty: { cols: 80, rows: 24 } });
    const way = connectHolder(join(bare.folder, SANDBOX), processId);
    const call = new AgentCall({
      connection: way,
      tokens: ['find', 'follow', '1'],
      clock: systemClock(),
      signal: new AbortController().signal,
    });
    let shown = '';
    for await (const piece of piecesOf(call)) {
      if (piece.kind === 'bytes') shown += String(piece.bytes);
      if (shown.includes('\n')) break;
    }
    expect(await bare.processes.list(SANDBOX)).to.deep.equal([]);
    way.destroy();
    const pid = Number.parseInt(shown);
    expect(pid).to.be.above(1);
    await eventually(() => readProcessStat(pid) === undefined, 'it is killed');
    await eventually(
      () => readdirSync(join(bare.folder, SANDBOX)).length === 0,
      'nothing is left of it',
    );
  });

  it('do not start if the spawner died in the middle of the order', async () => {
    const child = spawn(LAUNCHER, ['hold'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const [, , , socket] = child.stdio;
    if (socket && 'end' in socket) socket.end(Buffer.from([0, 0, 1, 0, 0x70]));
    expect(await ended).to.equal(125);
  });

  it('are given up in time if a start stands still inside the sandbox', async () => {
    const all = free();
    const tasks = join(bare.home, 'tasks');
    execFileSync('mkfifo', [tasks]);
    bare.cgroups = [bare.home]; // nobody reads: whoever enters it stands still
    bare.startDeadlineMs = 100;
    await bare.again();
    const error = await rejection(start('exec sleep 1000'));
    closeSync(openSync(tasks, constants.O_RDONLY | constants.O_NONBLOCK));

    expect(error).to.be.instanceOf(NotJoinable);
    expect(free()).to.equal(all);
    expect(bare.lost).to.deep.equal([]);
  });

  it('log why a start failed', async () => {
    bare.cgroups = ['/proc/self/no-cgroup'];
    const error = await rejection(start('exec sleep 1000'));
    expect(error).to.be.instanceOf(NotJoinable);
    await eventually(() => bare.warnings.length > 0, 'it is logged');
    expect(bare.warnings).to.deep.equal([
      { id: SANDBOX, error: 'launcher: open the cgroup: No such file or directory' },
    ]);
  });

  it('refuse a repeated start in time if a holder of a former spawner stands still', async () => {
    const fact = await start('exec sleep 1000');
    const holder = holderOf(fact);
    process.kill(holder, 'SIGSTOP');
    bare.startDeadlineMs = 100;
    bare.next();
    const { processId } = fact;
    const error = await rejection(start('exec sleep 1000', { processId }));
    process.kill(holder, 'SIGCONT');

    expect(error).to.be.instanceOf(NotJoinable);
    await eventually(
      async () => (await start('exit 1', { processId })).pid === fact.pid,
      'it goes on',
    );
  });

  it('do not end the spawner by a message or a socket that is none', async () => {
    const folder = join(bare.folder, SANDBOX);
    mkdirSync(join(folder, 'folder'), { recursive: true });
    const liar = createServer((socket) => {
      socket.on('error', () => {}).end(Buffer.from(`\0D\0\0\0\rz${'\xff'.repeat(12)}`, 'latin1'));
    });
    liar.listen(join(folder, 'liar'));
    await once(liar, 'listening');
    await bare.again();
    await eventually(() => !existsSync(join(folder, 'liar')), 'it is no holder');
    liar.close();
    rmSync(join(folder, 'folder'), { recursive: true });
  });

  it('leave a folder that cannot be removed to the next spawner', () => {
    const holders = new Holders({
      launchers: new LauncherPool(() => LAUNCHER, 'hold'),
      placeOf: () => undefined,
      folder: '/proc/self',
      lost: () => {},
      log: { warn: () => {} },
    });
    expect(() => holders.forget('task')).to.not.throw();
  });

  it('end with their sandbox, even without a spawner', async () => {
    await start('exec sleep 1000');
    bare.holders.stop();
    killIfAlive(bare.init.pid ?? 0);
    const own = (): number =>
      processesOf(LAUNCHER, 'hold').filter(({ parent }) => parent === process.pid).length;
    await eventually(
      () => readdirSync(join(bare.folder, SANDBOX)).length === 0 && own() <= 1,
      'it has ended',
    );
  });
});

const LONG = 'x'.repeat(100_000);
