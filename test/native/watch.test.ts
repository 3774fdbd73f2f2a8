import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../support/harness/eventually.ts';
import {
  collect,
  openWorkshop,
  startTimeOf,
  within,
  type Collected,
  type Workshop,
} from './support.ts';

describe('launcher watch', function () {
  let workshop: Workshop;
  let watch: ChildProcess;
  let collected: Collected;
  let lines: string[];

  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());
  beforeEach(() => {
    watch = spawn(workshop.launcher, ['watch'], { stdio: 'pipe', env: {} });
    collected = collect(watch);
    lines = [];
    let rest = '';
    watch.stdout?.on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
  });
  afterEach(async () => {
    watch.stdin?.end();
    await within(collected.end, 'the watcher ends');
  });

  it('reports the end of a process', async () => {
    const child = aProcess();
    say(`watch a ${child.pid} ${startTimeOf(child.pid ?? 0)}`);
    await hears('watching a');

    child.kill('SIGKILL');

    await hears('gone a');
  });

  it('kills a process that it watches, and no other', async () => {
    const [child, other] = [aProcess(), aProcess()];
    say(
      `watch a ${child.pid} ${startTimeOf(child.pid ?? 0)}`,
      `watch b ${other.pid} ${startTimeOf(other.pid ?? 0)}`,
      'kill a',
    );

    await hears('gone a');
    expect(lines).to.deep.equal(['watching a', 'watching b', 'gone a']);
    expect(startTimeOf(other.pid ?? 0)).to.be.a('string');
    other.kill('SIGKILL');
  });

  it('reports at once a process that is absent or has another start time, and never kills it', async () => {
    const child = aProcess();
    say(
      `watch a ${child.pid} ${Number(startTimeOf(child.pid ?? 0)) - 1}`,
      'watch b 4194303 1',
      'kill a',
    );

    await hears('gone b');
    await eventually(() => lines.length === 3, 'all answers');
    expect(lines).to.deep.equal(['gone a', 'gone b', 'gone a']);
    expect(startTimeOf(child.pid ?? 0)).to.be.a('string');
    child.kill('SIGKILL');
  });

  it('is silent about a dropped process', async () => {
    const child = aProcess();
    say(`watch a ${child.pid} ${startTimeOf(child.pid ?? 0)}`, 'drop a', 'drop a');
    await hears('watching a');
    child.kill('SIGKILL');
    await once(child, 'exit');
    say('kill b');

    await hears('gone b');
    expect(lines).to.deep.equal(['watching a', 'gone b']);
  });

  it('accepts a key again for the same process or another', async () => {
    const [child, other] = [aProcess(), aProcess()];
    const line = `watch a ${child.pid} ${startTimeOf(child.pid ?? 0)}`;
    say(line, line, `watch a ${other.pid} ${startTimeOf(other.pid ?? 0)}`, 'kill a');

    await hears('gone a');
    expect(lines).to.deep.equal(['watching a', 'watching a', 'watching a', 'gone a']);
    expect(startTimeOf(child.pid ?? 0)).to.be.a('string');
    child.kill('SIGKILL');
  });

  it('answers each malformed line with an error and continues', async () => {
    const child = aProcess();
    const faults = [
      '',
      ' ',
      'watch',
      'watch a',
      'watch a b',
      'watch a 1',
      'watch a x 1',
      'watch a 1 x',
      'watch a -1 1',
      'watch a 0 1',
      'watch a 99999999999 1',
      'watch a 1 1 1',
      'kill',
      'kill a b',
      'drop',
      'nonsense a',
      `kill ${'k'.repeat(129)}`,
      'x'.repeat(100_000),
      'kill \0',
      '%s%n %s',
    ];
    say(
      ...faults,
      `watch ${'k'.repeat(128)} ${child.pid} ${startTimeOf(child.pid ?? 0)}`,
      `kill ${'k'.repeat(128)}`,
    );

    await hears(`gone ${'k'.repeat(128)}`);
    expect(lines.filter((line) => line.startsWith('error '))).to.have.length(faults.length);
    expect(lines).to.have.length(faults.length + 2);
  });

  it('watches thousands at once', async () => {
    const child = aProcess();
    const start = startTimeOf(child.pid ?? 0);
    const keys = Array.from({ length: 5_000 }, (_, index) => `key-${index}`);
    say(...keys.map((key) => `watch ${key} ${child.pid} ${start}`));
    await hears('watching key-4999');

    child.kill('SIGKILL');

    await eventually(() => lines.length === 10_000, 'all are told');
    expect(new Set(lines.filter((line) => line.startsWith('gone '))).size).to.equal(5_000);
  });

  it('ends at the end of its input', async () => {
    watch.stdin?.end('kill a\n');

    expect(await within(collected.end, 'the watcher ends')).to.include({
      code: 0,
      stdout: 'gone a\n',
    });
  });

  function say(...said: string[]): void {
    watch.stdin?.write(said.map((line) => `${line}\n`).join(''));
  }

  async function hears(line: string): Promise<void> {
    await eventually(() => lines.includes(line), `${line} in ${JSON.stringify(lines.slice(-5))}`);
  }
});

function aProcess(): ChildProcess {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  void collect(child).end;
  return child;
}
