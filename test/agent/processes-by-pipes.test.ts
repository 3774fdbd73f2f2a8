import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { ProcessGone } from '../../src/contracts/processes.ts';
import { InstanceGone } from '../../src/contracts/sandbox-driver.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { InstanceProcesses } from '../../src/k8s/processes/instance-processes.ts';
import type { AgentWay } from '../../src/contracts/agent/process-calls.ts';
import { builtAgent } from '../../local-cluster/built-agent.ts';
import { processesSuite } from '../contracts/processes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { buildLauncher } from '../support/harness/a-spawned-driver.ts';
import { OutputReading } from '../support/harness/output-reading.ts';
import { rejection } from '../support/harness/rejection.ts';

const ID = 'a';
const IS_ROOT = process.getuid?.() === 0;
/** Whom a suite that runs as root takes for the sandbox's user. */
const NOBODY = IS_ROOT ? { uid: 65_534, gid: 65_534 } : {};
const NEVER = new AbortController().signal;

/** Processes of this machine, each call by a process of the agent, as in a Pod. */
class ProcessesByPipes {
  readonly uid = v7();
  readonly processes: InstanceProcesses;
  /** Called with each way, before anything is asked. */
  opened: (way: AgentWay) => void = () => {};
  user: object = NOBODY;
  readonly #folder: string;

  constructor() {
    buildLauncher();
    this.#folder = mkdtempSync(join(tmpdir(), 'sandpool-pipes-'));
    chmodSync(this.#folder, 0o755);
    copyFileSync(builtAgent(), join(this.#folder, 'launcher'));
    const pod = { namespace: 'n', name: 'p', uid: this.uid, container: 'c' };
    this.processes = new InstanceProcesses({
      enter: (id, way) =>
        id === ID ? way([pod]) : Promise.reject(new InstanceGone('there is no such sandbox')),
      openAgent: () => Promise.resolve(this.#open()),
      pause: (ms) => sleep(ms, true),
      clock: systemClock(),
    });
  }

  close(): Promise<void> {
    rmSync(this.#folder, { recursive: true });
    return Promise.resolve();
  }

  #open(): AgentWay {
    const { stdin, stdout } = spawn(join(this.#folder, 'launcher'), ['call'], {
      ...this.user,
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const duplex = Duplex.from({ readable: stdout, writable: stdin });
    const way = Object.assign(duplex, { hold: () => undefined });
    this.opened(way);
    return way;
  }
}

processesSuite('an agent by pipes', () => {
  const pipes = new ProcessesByPipes();
  return Promise.resolve({
    processes: pipes.processes,
    instance: () => Promise.resolve(ID),
    close: () => pipes.close(),
  });
});

describe('the holder of a process in a Pod', () => {
  let pipes: ProcessesByPipes;
  beforeEach(() => {
    pipes = new ProcessesByPipes();
  });
  afterEach(async () => {
    pipes.user = NOBODY;
    pipes.opened = () => {};
    for (const { processId } of await pipes.processes.list(ID))
      await pipes.processes.remove(ID, processId);
    await pipes.close();
  });

  const start = async (script: string, part: { readonly stdin?: boolean } = {}) => {
    const argv = ['/bin/sh', '-c', script];
    const order = { processId: v7(), tenant: 't', argv, stdin: false, ...part };
    return await pipes.processes.start(ID, order);
  };
  const read = (processId: string): OutputReading =>
    new OutputReading((signal) => pipes.processes.output(ID, processId, { pace: false, signal }));
  const holderOf = (pid: number): number =>
    Number(/\) \w (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  /** Cuts each way as its answer comes, so that it is lost, so many times. */
  const loseAnswers = (times: number): void => {
    let left = times;
    pipes.opened = (way) => {
      if (left-- > 0) way.once('readable', () => way.destroy());
    };
  };

  it('ends with its process, which is then unknown', async () => {
    const { processId, pid } = await start('exec sleep 1000');
    process.kill(holderOf(pid), 'SIGKILL');
    await eventually(
      async () => (await pipes.processes.find(ID, processId)) === undefined,
      'it is gone',
    );
    expect(await rejection(pipes.processes.signal(ID, processId, 'TERM'))).to.be.instanceOf(
      ProcessGone,
    );
    await eventually(() => !isThere(pid), 'its process is killed');
  });

  it('applies an input and a signal once, even if the answer is lost', async () => {
    const script =
      'trap "echo caught" USR1; echo ready; read line; echo "$line"; sleep 1000 & wait; kill $!; wc -c';
    const { processId } = await start(script, { stdin: true });
    const reading = read(processId);
    await reading.until('ready\n');
    loseAnswers(2);
    await pipes.processes.write(ID, processId, { bytes: Buffer.from('line\n'), signal: NEVER });
    await reading.until('line\n');
    loseAnswers(2);
    await pipes.processes.signal(ID, processId, 'USR1');
    await reading.until('caught\n');
    await pipes.processes.closeInput(ID, processId);
    await reading.end();
    expect(reading.text('stdout')).to.equal('ready\nline\ncaught\n0\n');
  });

  it('starts a process once, and can be removed, even if answers are lost', async () => {
    loseAnswers(2);
    const { processId } = await start('exec sleep 1000');
    expect(await pipes.processes.list(ID)).to.have.length(1);
    loseAnswers(1);
    await pipes.processes.remove(ID, processId);
    expect(await pipes.processes.list(ID)).to.have.length(0);
  });

  it('serves no other user, and cannot be inspected by processes of the same user', async function () {
    const { processId, pid } = await start('exec sleep 1000');
    const memory = `cat /proc/${holderOf(pid)}/environ`;
    expect(() => execFileSync('sh', ['-c', memory], { ...NOBODY, stdio: 'pipe' })).to.throw(
      'denied',
    );
    if (!IS_ROOT) return;
    pipes.user = {};
    expect(await pipes.processes.find(ID, processId)).to.equal(undefined);
    expect(await pipes.processes.list(ID)).to.have.length(0);
  });

  it('is found next to impostors of its name', async () => {
    const { processId } = await start('exec sleep 1000');
    const room = pipes.uid.replaceAll('-', '');
    const liars = [Buffer.alloc(0), Buffer.alloc(1 << 20, 'E')].map((words, number) =>
      createServer((socket) => socket.on('error', () => {}).end(words)).listen(
        `\0sandpool-${room}-liar-${number}`,
      ),
    );
    await Promise.all(liars.map((liar) => once(liar, 'listening')));
    try {
      const known = await pipes.processes.list(ID);
      expect(known.map((each) => each.processId)).to.deep.equal([processId]);
      expect((await start('true')).processId).to.not.equal(processId);
    } finally {
      for (const liar of liars) liar.close();
    }
  });
});

const isThere = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
};
