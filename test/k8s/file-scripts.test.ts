import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 } from 'uuid';
import { FileRefused, type FileProblem } from '../../src/contracts/files.ts';
import { refusalIn } from '../../src/k8s/files/file-refusals.ts';
import { fileScripts, textInput, type FileScripts } from '../../src/k8s/files/file-scripts.ts';
import { readStat, readStats, versionWord } from '../../src/k8s/files/file-stats.ts';
import { scriptCommand, scriptLines } from '../../src/k8s/streams/pod-script.ts';

/** The scripts by themselves, in this machine's shell; test/kubernetes has the whole. */
describe('the scripts of files', function () {
  const [shell, ...argv] = scriptCommand().argv;
  const lock = `.sandpool-test-${v7()}`;
  const place = `/dev/shm/${lock}`;
  const folders: string[] = [];
  let folder = '';
  /** Has a `sleep` that takes no time. */
  let hasty = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-file-scripts-'));
    hasty = mkdtempSync(join(tmpdir(), 'sandpool-hasty-'));
    folders.push(folder, hasty);
    symlinkSync('/bin/true', join(hasty, 'sleep'));
  });
  after(() => {
    for (const each of folders) rmSync(each, { recursive: true, force: true });
    rmSync(place, { force: true });
  });

  const run = (script: keyof FileScripts, ...input: readonly Buffer[]): string =>
    spawnSync(shell, argv, {
      input: Buffer.concat([fileScripts()[script], ...input]),
      env: { PATH: `${hasty}:/usr/bin:/bin` },
    })
      .stdout.toString('latin1')
      .replace(/^\d+\n/, '');
  const write = (name: string, content: string, versions = '-'): string =>
    run(
      'write',
      textInput(Buffer.from(join(folder, name))),
      scriptLines(v7(), 'yes', 'no', '-', versions, 'the-end', lock),
      Buffer.from(`${content}the-end`),
    );
  const problemIn = (answer: string): FileProblem | undefined => {
    const refusal = refusalIn(answer);
    return refusal instanceof FileRefused ? refusal.problem : undefined;
  };

  const WORDS = [
    'busybox.conf',
    'read-only',
    'denied',
    'no space left',
    'it has changed',
    'invalid argument',
    'too long: file exists',
    'one line\nand: it is busy',
  ];
  for (const name of WORDS)
    it(`refuse for what went wrong, not for the words of a name: ${JSON.stringify(name)}`, () => {
      const text = textInput(Buffer.from(join(folder, name)));
      const answers = {
        stat: run('stat', text),
        read: run('read', text),
        list: run('list', scriptLines(1), text),
        remove: run('change', scriptLines('remove yes'), text),
        write: write(`${name}/below`, 'x'),
      };
      for (const [script, answer] of Object.entries(answers))
        expect(problemIn(answer), `${script}: ${answer}`).to.equal('not-found');
    });

  it('take a lock over that a writer left who was killed, or had no room for a byte', () => {
    const { pid } = spawnSync('true');
    for (const leave of [() => symlinkSync(String(pid), place), () => writeFileSync(place, '')]) {
      leave();
      expect(write('locked', 'new')).to.match(/^ready\n(made|replaced)\n/);
      expect(lstatSync(place, { throwIfNoEntry: false })).to.equal(undefined);
    }
  });

  it('leave nothing of a file whose turn does not come', () => {
    symlinkSync(String(process.pid), place);
    try {
      expect(problemIn(write('late', 'new'))).to.equal('busy');
    } finally {
      rmSync(place);
    }
    expect(readdirSync(folder).filter((name) => name.includes('.part'))).to.deep.equal([]);
    expect(existsSync(join(folder, 'late'))).to.equal(false);
  });

  it('know a version again that is older than all clocks', () => {
    const file = join(folder, 'old');
    writeFileSync(file, 'x');
    spawnSync('touch', ['-d', '@-1.25', file]);
    const read = readStat(run('stat', textInput(Buffer.from(file))));
    if (!read) throw new Error('it was not read');
    expect(read.stat.mtimeNs).to.equal(-1_250_000_000n);
    expect(write('old', 'y', versionWord(read.stat))).to.match(/^ready\nreplaced\n/);
    expect(problemIn(write('old', 'z', versionWord(read.stat)))).to.equal('changed');
  });

  it('end where a file is shorter than was said, though whoever reads waits for more', async () => {
    const file = join(folder, 'short');
    writeFileSync(file, 'six by');
    const script = spawn(shell, argv, { env: { PATH: '/usr/bin:/bin' } });
    let said = '';
    script.stdout.on('data', (piece: Buffer) => (said += piece.toString()));
    const order = [textInput(Buffer.from(file)), scriptLines('0 100 no')];
    script.stdin.write(Buffer.concat([fileScripts().read, ...order]));
    const [code] = (await once(script, 'close')) as [number | null];
    expect([code, said.slice(said.lastIndexOf('\n') + 1)]).to.deep.equal([0, 'six by']);
  });

  it('list what lies behind a file of a time that no year has', () => {
    const below = mkdtempSync('/dev/shm/sandpool-times-'); // where a time may be any
    folders.push(below);
    for (const name of ['a', 'b', 'c']) writeFileSync(join(below, name), name);
    const { status } = spawnSync('touch', ['-d', '@99999999999999999', join(below, 'b')]);
    expect(status).to.equal(0);
    const names = ['./a', './b', './c'];
    const wanted = Buffer.from(names.map((name) => `${name}\0`).join(''));
    const answer = run('list', scriptLines(1), textInput(Buffer.from(below)), wanted);
    const [stat = '', end] = answer.split('\0').slice(-2);
    const stats = readStats(names, stat);
    expect(end).to.equal('');
    expect([...stats.keys()]).to.deep.equal(names);
  });

  it('remove what is too deep, in the words of either C library', () => {
    const [rm, once] = [join(hasty, 'rm'), join(hasty, 'once')];
    for (const words of ['File name too long', 'Filename too long']) {
      const complaint = `: >${once}; echo "rm: can't remove 'a': ${words}" >&2; exit 1`;
      const first = `[ "$1" = --help ] && exit; [ -e ${once} ] || { ${complaint}; }`;
      writeFileSync(rm, `#!/bin/sh\n${first}\nexec /bin/rm "$@"\n`, { mode: 0o755 });
      mkdirSync(join(folder, 'deep'));
      const path = textInput(Buffer.from(join(folder, 'deep')));
      expect(run('change', scriptLines('remove yes'), path)).to.equal('removed\n');
      for (const each of [rm, once]) rmSync(each);
    }
  });
});
