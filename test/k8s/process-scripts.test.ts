import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { v7 } from 'uuid';
import { processScripts, type ProcessScripts } from '../../src/k8s/processes/process-scripts.ts';
import { execOrder } from '../../src/k8s/streams/exec-scripts.ts';
import { scriptCommand, scriptLines } from '../../src/k8s/streams/pod-script.ts';
import { eventually } from '../support/harness/eventually.ts';

/** The scripts by themselves, in this machine's shell; test/kubernetes has the whole. */
describe('the scripts of processes', function () {
  const room = `.sandpool-test-${v7()}`;
  const [shell, ...argv] = scriptCommand().argv;
  /** Goes before what a shell runs: it makes files, and has no room for a byte in them. */
  const WITHOUT_ROOM = "trap '' XFSZ; ulimit -f 0\n";
  let circumstances = '';
  after(() => {
    rmSync(`/dev/shm/${room}`, { recursive: true, force: true });
  });

  const run = (script: keyof ProcessScripts, ...lines: readonly (string | Buffer)[]): string => {
    const input = Buffer.concat([
      processScripts()[script],
      scriptLines(room),
      ...lines.map((line) => (typeof line === 'string' ? scriptLines(line) : line)),
    ]);
    const [option, text, name] = argv;
    const { stdout } = spawnSync(shell, [option, circumstances + text, name], {
      input,
      env: { PATH: '/usr/bin:/bin' },
    });
    return stdout
      .toString()
      .replace(/^\d+\n/, '')
      .trim();
  };
  const list = (id: string): string => {
    const answer = run('list', id);
    expect(answer).to.match(/(^|\n)\.$/);
    return answer.slice(0, -1).trim();
  };
  const start = (id: string, command: readonly string[], seconds = '-'): string =>
    run(
      'start',
      scriptLines(id, 'no', 'no', seconds, 64, '{"told":1}', 80, 24),
      execOrder({ argv: command, token: '' }),
    );
  const recordOf = (id: string): readonly string[] => list(id).split(' ');

  it('do nothing where the order is cut short, and leave nothing', async () => {
    const cut = execOrder({ argv: ['sleep', '970'], token: '' }).subarray(0, -6);
    const answer = run('start', scriptLines('cut', 'no', 'no', '-', 64, '{}', 80, 24), cut);
    expect(answer).to.equal('refused order');
    await eventually(() => list('') === '', 'nothing is left');
  });

  it('start nothing where there is no room, say so, and leave nothing', () => {
    circumstances = WITHOUT_ROOM;
    try {
      expect(start('roomless', ['true'])).to.equal('roomless');
    } finally {
      circumstances = '';
    }
    expect(existsSync(`/dev/shm/${room}/roomless`)).to.equal(false);
  });

  it('keep what they are told of a process as it is, also what echo would change', () => {
    const told = JSON.stringify({ argv: ['printf', 'a\nb\\n\\c \\0101\t"'], tag: '-n' });
    const lines = scriptLines('told', 'no', 'no', '-', 64, told, 80, 24);
    expect(run('start', lines, execOrder({ argv: ['true'], token: '' }))).to.match(/^started/);
    expect(list('told').replace(/^told \w(?: \S+){5} /, '')).to.equal(told);
  });

  it('tell a process whose launcher was killed from one that runs', async () => {
    const over = `/dev/shm/${room}/orphan/over`;
    const waits = `kill -9 $PPID; until [ -e ${over} ]; do sleep 0.01; done`;
    expect(start('orphan', ['sh', '-c', waits])).to.match(/^started \d+$/);
    expect(recordOf('orphan')[1]).to.equal('R');
    writeFileSync(over, '');
    await eventually(() => recordOf('orphan')[1] === 'L', 'it is known to be lost');
  });

  it('do not take another process of its number for one that has ended', async () => {
    expect(start('signalled', ['sleep', '969'])).to.match(/^started/);
    expect(run('act', 'signalled', 'signal KILL')).to.equal('done');
    await eventually(() => recordOf('signalled')[1] === 'E', 'it has ended');
    expect(run('act', 'signalled', 'signal KILL')).to.equal('ended');
    expect(run('act', 'signalled', 'remove')).to.equal('done');
    expect(run('act', 'signalled', 'remove')).to.equal('gone');
  });

  it('end a reader when whoever reads is gone, and keep nothing of it', async () => {
    start('read', ['sleep', '968']);
    const reader = spawn(shell, argv, { stdio: ['pipe', 'pipe', 'ignore'] });
    const exited = new Promise((resolve) => reader.once('exit', resolve));
    reader.stdout.resume();
    reader.stdin.write(
      Buffer.concat([processScripts().output, scriptLines(room, 'read', 'r1', '-', 'yes')]),
    );
    const files = (): string => spawnSync('ls', [`/dev/shm/${room}/read`]).stdout.toString();
    await eventually(() => files().includes('p.r1'), 'it reads');
    reader.stdin.end();
    await exited;
    expect(files()).to.not.match(/[wmp]\.r1/);
    expect(run('act', 'read', 'remove')).to.equal('done');
  });
});
