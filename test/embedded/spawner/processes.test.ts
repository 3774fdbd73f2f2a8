import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import { INPUT_BYTES } from '../../../src/embedded/spawner/processes/bounds.ts';
import { MemoryShares } from '../../../src/embedded/spawner/processes/processes.ts';
import { Processes } from '../../../src/embedded/spawner/processes/processes.ts';
import {
  CallRefused,
  type ProcessStart,
} from '../../../src/embedded/spawner/processes/process-messages.ts';
import { readProcessStat } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import type { SandboxProcess } from '../../../src/embedded/spawner/processes/sandbox-process.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import { rejection } from '../../support/harness/rejection.ts';

/** Keeps none waiting. */
class Launchers extends LauncherPool {
  readonly taken: ChildProcess[] = [];
  readonly #path: string;

  constructor(path: string) {
    super(() => path);
    this.#path = path;
  }

  override take({ withInput }: { readonly withInput: boolean }): ChildProcess {
    const input = withInput ? 'pipe' : 'ignore';
    const child = spawn(this.#path, { stdio: [input, 'pipe', 'pipe', 'pipe'] });
    this.taken.push(child);
    return child;
  }
}

/** Says that the program runs, as the launcher does, and runs it without any sandbox. */
const launcherOf = (program: string): string =>
  `#!/bin/sh\ncat <&3 >/dev/null\necho 'pid 7' >&3\nexec 3>&-\n${program}\n`;

describe('processes of the spawner', function () {
  let folder: string;
  let launchers: Launchers;
  let shares: MemoryShares;
  let processes: Processes;
  /** What is to be done later, and was not called off. */
  let due: Set<() => void>;
  let count = 0;

  const run = (
    program: string,
    bounds?: { readonly tenant: number; readonly all: number },
  ): void => {
    const file = join(folder, 'launcher');
    writeFileSync(file, launcherOf(program));
    chmodSync(file, 0o755);
    shares = new MemoryShares(bounds);
    due = new Set();
    launchers = new Launchers(file);
    processes = new Processes({
      launchers,
      launcherPath: () => file,
      placeOf: () => ({
        init: { pid: 1, startTime: '1' },
        user: undefined,
        cgroups: [],
        env: {},
        workingDir: '/',
        bare: { home: folder, uid: process.getuid?.() ?? 0 },
      }),
      now: () => 1_000,
      run: () => {},
      later: (_milliseconds, act) => {
        due.add(act);
        return () => due.delete(act);
      },
      shares,
    });
  };
  const start = async (id: string, part: Partial<ProcessStart> = {}) => {
    const processId = `p${(count += 1)}`;
    const order = { processId, tenant: 'blue', argv: ['true'], stdin: false, ...part };
    await processes.start(id, order);
    return processes.get(id, processId);
  };
  const refusalOf = async (call: Promise<unknown>) => {
    const error = await rejection(call);
    expect(error).to.be.instanceOf(CallRefused);
    return (error as CallRefused).refusal;
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-processes-'));
  });
  afterEach(() => {
    processes.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  for (const [what, left] of [
    ['floods', 'yes'],
    ['drips', 'while echo x; do sleep 0.005; done'],
  ] as const)
    it(`end even if a leftover process ${what} their output, and can be removed`, async () => {
      run(`(${left}) &\nexit 3`);
      const ended = await start('box');
      await ended.over;
      expect(ended.fact).to.include({ status: 'Exited', exitCode: 3 });

      const removed = await start('box');
      await processes.remove('box', removed.order.processId);
      expect(processes.list('box').map(({ processId }) => processId)).to.deep.equal([
        ended.order.processId,
      ]);
    });

  it('do not count as timed out if they ended in time while their spawner was stopped', async () => {
    run('(while echo x; do sleep 0.005; done) &\nexit 3');
    const began = performance.now();
    const left = await start('box', { timeoutMs: 1_000 });
    const [{ pid = 0 } = {}] = launchers.taken;
    while (![undefined, 'Z'].includes(readProcessStat(pid)?.state))
      if (performance.now() - began > NEVER_COMES_MS) throw new Error('it does not end');
    const leftMs = Math.max(0, began + 1_100 - performance.now());
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs);
    await left.over;

    expect(left.fact).to.include({ exitCode: 3 });
  });

  it('leave nothing behind when they are removed', async () => {
    run('exit 0');
    for (let round = 0; round < 3; round += 1) {
      const one = await start('box');
      await one.over;
      expect(due.size).to.equal(1);
      await processes.remove('box', one.order.processId);
      expect(due.size).to.equal(0);
    }
    expect(shares.take('blue', 256 << 20)).to.equal(undefined);
  });

  it('count their commands as memory of the tenant', async () => {
    run('exec sleep 1000', { tenant: 64 << 10, all: 1 << 20 });
    const long = { argv: ['true', 'x'.repeat(20 << 10)] };
    await start('box', long);
    await start('other', long);

    expect(await refusalOf(start('third', long))).to.include({ kind: 'full', of: 'tenant' });
    await start('third');
    processes.forget('box');
    await start('third', long);
  });

  it('are limited by the size of their list of commands, without ended ones', async () => {
    run('exec sleep 1000');
    const long = { argv: Array.from({ length: 15 }, () => 'x'.repeat(100_000)) };
    const first = await start('box', long);
    await start('box', long);

    expect(await refusalOf(start('box', long))).to.include({ kind: 'full', of: 'sandbox' });
    first.kill();
    await first.over;
    const third = await start('box', long);
    const known = processes.list('box').map(({ processId }) => processId);
    expect(known).to.have.length(2).and.include(third.order.processId);
  });

  it('drop their variables once they run', async () => {
    run('exec sleep 1000');
    const { order } = await start('box', { env: { KEY: 'of mine' } });
    expect(order).to.not.have.property('env');
  });

  /** Gives it pieces until it takes no more, and the kernel neither. */
  const fill = async (deaf: SandboxProcess, piece: Buffer): Promise<number> => {
    let refused: unknown;
    let pieces = 0;
    await eventually(() => {
      for (let given = 0; given < 200 && refused === undefined; given += 1)
        try {
          deaf.write(piece, new AbortController().signal).catch(() => undefined);
          pieces += 1;
        } catch (error) {
          refused = error;
        }
      return refused !== undefined;
    }, 'it is full');
    expect(refused).to.be.instanceOf(CallRefused);
    return pieces;
  };

  it('buffer a bounded number of short inputs for a process that does not read', async () => {
    run('exec sleep 1000');
    const taken = await fill(await start('box', { stdin: true }), Buffer.from('x'));
    expect(taken, 'with what the kernel holds').to.be.below(INPUT_BYTES / 2);
  });

  it('buffer a bounded number of input ends for a terminal that is not read', async () => {
    run('stty raw -echo <&4\nexec sleep 1000');
    const deaf = await start('box', { tty: { cols: 80, rows: 24 } });
    await fill(deaf, Buffer.alloc(64 << 10, 'x'));
    expect(() => deaf.closeInput()).to.throw(CallRefused);
  });
});
