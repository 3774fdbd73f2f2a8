import { expect } from 'chai';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childrenOf } from '../../src/embedded/spawner/sandbox/process-identity.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import { collect, openWorkshop, within, type Ended, type Workshop } from './support.ts';

const ID = '0190d4a5-7b1e-7c3a-9f00-000000000001';
const OTHER = '0190d4a5-7b1e-7c3a-9f00-000000000002';
const RECORD = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout ([FP]) (.*)$/s;
const MIB = 1 << 20;

describe('launcher logs', function () {
  let workshop: Workshop;
  let folder: string;
  const pumps: ChildProcess[] = [];
  let fifos: number[] = [];

  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-logs-'));
    mkdirSync(join(folder, 'pipes'));
  });
  afterEach(async () => {
    for (const fd of fifos.splice(0)) closeSync(fd);
    for (const pump of pumps.splice(0)) {
      if (pump.exitCode !== null || pump.signalCode !== null) continue;
      const over = once(pump, 'exit');
      pump.kill('SIGKILL');
      await within(over, 'it ends');
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  it('stores output line by line, with its time', async () => {
    const began = Date.now();
    pump();
    const fd = fifo(ID);
    writeSync(fd, 'one\ntwo\n\n');
    await eventually(() => records(ID).length === 3, 'three lines');
    expect(records(ID)).to.deep.equal([
      ['F', 'one'],
      ['F', 'two'],
      ['F', ''],
    ]);
    expect(Date.parse(linesOf(ID)[0]?.slice(0, 30) ?? '')).to.be.within(
      began - 1_000,
      Date.now() + 1_000,
    );
  });

  it('stores unfinished lines, and splits long ones', async () => {
    pump();
    const fd = fifo(ID);
    writeSync(fd, 'half');
    await eventually(() => records(ID).length === 1, 'the half');
    writeSync(fd, ` and half\n${'x'.repeat(40_000)}\n`);
    await eventually(
      () => records(ID).at(-1)?.[0] === 'F' && records(ID).length > 2,
      'the long one',
    );
    expect(records(ID)[0]).to.deep.equal(['P', 'half']);
    expect(records(ID)[1]).to.deep.equal(['F', ' and half']);
    expect(
      records(ID)
        .slice(2)
        .map(([kind]) => kind),
    ).to.match(/^(P,)+F$/);
    expect(
      records(ID)
        .slice(2)
        .map(([, text]) => text)
        .join(''),
    ).to.equal('x'.repeat(40_000));
    expect(Math.max(...records(ID).map(([, text = '']) => text.length))).to.be.at.most(16_384);
  });

  it('adopts existing fifos, and continues after a kill of another pump', async () => {
    const first = pump();
    const fd = fifo(ID);
    writeSync(fd, 'one\n');
    await eventually(() => records(ID).length === 1, 'the first line');
    first.kill('SIGKILL');
    await within(collect(first).end, 'it ends');
    writeSync(fd, 'two\n');
    const early = fifo(OTHER);
    writeSync(early, 'other\n');

    pump();

    await eventually(
      () => records(ID).length === 2 && records(OTHER).length === 1,
      'the other lines',
    );
    expect(records(ID)).to.deep.equal([
      ['F', 'one'],
      ['F', 'two'],
    ]);
  });

  it('starts a new line after one that a crash truncated', async () => {
    mkdirSync(join(folder, ID));
    writeFileSync(join(folder, ID, '0'), '2026-01-31T12:00:00.000000000Z stdout F who');
    pump();
    writeSync(fifo(ID), 'next\n');
    await eventually(() => linesOf(ID).length === 2, 'the next line');
    expect(linesOf(ID)[1]).to.match(RECORD);
  });

  it('removes the fifo once all output is written and nobody can write any more', async () => {
    pump();
    const fd = fifo(ID);
    writeSync(fd, 'first words\n');
    await eventually(() => records(ID).length === 1, 'the first words');
    writeSync(fd, 'last words');
    close(fd);
    await eventually(() => !existsSync(join(folder, 'pipes', ID)), 'the fifo is gone');
    expect(records(ID)).to.deep.equal([
      ['F', 'first words'],
      ['P', 'last words'],
    ]);
  });

  it('removes a fifo whose writers left before it started, and no other', async () => {
    close(fifo(ID));
    fifo(OTHER);
    pump();
    await eventually(() => !existsSync(join(folder, 'pipes', ID)), 'the fifo is gone');
    expect(existsSync(join(folder, 'pipes', OTHER))).to.equal(true);
    expect(existsSync(join(folder, ID))).to.equal(false);
  });

  it('keeps two files per log, named by position', async () => {
    pump({ fileBytes: 8_192 });
    const fd = fifo(ID);
    for (let n = 0; n < 500; n += 1) writeSync(fd, `line ${n} ${'.'.repeat(40)}\n`);
    await eventually(
      () => records(ID).at(-1)?.[1]?.startsWith('line 499 ') === true,
      'the last line',
    );

    const files = readdirSync(join(folder, ID))
      .map(Number)
      .toSorted((a, b) => a - b);
    expect(files).to.have.lengthOf(2);
    const [first = 0, second = 0] = files;
    expect(second - first)
      .to.equal(statSync(join(folder, ID, String(first))).size)
      .and.be.at.most(8_192);
    for (const file of files)
      expect(readFileSync(join(folder, ID, String(file)), 'utf8')).to.match(/^\d{4}-.*\n$/s);
  });

  it('drops and counts the middle of a flood, keeps its end, and does not delay others', async () => {
    // Room for all that may be kept, however long a busy machine takes: no file is replaced.
    pump({ fileBytes: 64 * MIB });
    const [flooded, quiet] = [fifo(ID), fifo(OTHER)];
    const chunk = `${'flood '.repeat(10)}\n`.repeat(1_000);
    for (let n = 0; n < 400; n += 1) writeSync(flooded, chunk);
    writeSync(quiet, 'here\n');
    await eventually(() => records(OTHER).length === 1, 'the quiet one');
    writeSync(flooded, 'the end\n');

    await eventually(() => records(ID).at(-1)?.[1] === 'the end', 'the end of the flood');

    const bytes = chunk.length * 400 + 'the end\n'.length;
    const marker = records(ID).filter(([, text = '']) => text.startsWith('[sandpool: '));
    const dropped = marker.reduce(
      (sum, [, text = '']) => sum + Number(/(\d+) bytes/.exec(text)?.[1]),
      0,
    );
    // No line of the flood is empty: an empty record ends one that was dropped in the middle.
    const kept = records(ID).reduce(
      (sum, [kind, text = '']) =>
        sum +
        (text === '' || text.startsWith('[sandpool: ') ? 0 : text.length + (kind === 'F' ? 1 : 0)),
      0,
    );
    expect(marker.length).to.be.greaterThan(0);
    expect(dropped + kept).to.equal(bytes);
  });

  it('ends with the last fifo once its starter is gone, or at once without fifos', async () => {
    const working = pump();
    const fd = fifo(ID);
    writeSync(fd, 'one\n');
    await eventually(() => records(ID).length === 1, 'the line');
    working.stdin?.end();
    writeSync(fd, 'two\n');
    await eventually(() => records(ID).length === 2, 'the next line');
    close(fd);
    expect((await ended(working)).code).to.equal(0);
    const idle = pump();
    idle.stdin?.end();
    expect((await ended(idle)).code).to.equal(0);
  });

  it('leaves the folder to another running pump', async () => {
    pump();
    const fd = fifo(ID);
    writeSync(fd, 'one\n');
    await eventually(() => records(ID).length === 1, 'the line');
    expect((await ended(pump())).code).to.equal(125);
  });

  it('ignores files that are not fifos', async () => {
    writeFileSync(join(folder, 'pipes', OTHER), 'a file');
    execFileSync('mkfifo', [join(folder, 'pipes', 'not-an-id')]);
    pump();
    writeSync(fifo(ID), 'one\n');
    await eventually(() => records(ID).length === 1, 'the line');
    expect(readdirSync(folder).toSorted()).to.deep.equal([ID, 'pipes']);
  });

  it('removes logs after the retention time, except those of possible writers', async () => {
    const [old, young, live] = [anId(3), anId(4), anId(5)];
    for (const id of [old, young, live]) aLog(id, 100);
    for (const id of [old, live]) age(id, 3_700);
    fifo(live);
    pump({ retentionSeconds: 3_600 });
    await eventually(() => !existsSync(join(folder, old)), 'the old one is gone');
    expect([young, live].map((id) => existsSync(join(folder, id, '0')))).to.deep.equal([
      true,
      true,
    ]);
  });

  it("makes room by the oldest ended logs first, then by the others' older lines", async () => {
    const ids = [anId(3), anId(4), anId(5)];
    for (const [n, id] of ids.entries()) {
      aLog(id, MIB / 2);
      age(id, 1_000 - n * 100);
    }
    aLog(ID, MIB);
    writeFileSync(join(folder, ID, String(MIB)), 'x'.repeat(1_000));
    fifo(ID);
    pump({ totalBytes: MIB });
    await eventually(() => !existsSync(join(folder, ID, '0')), 'there is room');

    expect(ids.map((id) => existsSync(join(folder, id, '0')))).to.deep.equal([false, false, false]);
    expect(existsSync(join(folder, ids[0] ?? '')), 'a trace stays').to.equal(true);
    expect(readdirSync(join(folder, ID))).to.deep.equal([String(MIB)]);
  });

  it('makes room by logs of the largest owner, even if others have older ones', async () => {
    const [loud, quiet] = ['a'.repeat(16), 'b'.repeat(16)];
    for (const [n, owner] of [quiet, loud, loud, loud].entries()) {
      aLog(anId(n + 3), MIB / (owner === loud ? 2 : 8), owner);
      age(anId(n + 3), 1_000 - n * 100);
    }
    pump({ totalBytes: MIB });
    await eventually(
      () => [4, 5].every((n) => !existsSync(join(folder, anId(n), '0'))),
      'there is room',
    );

    expect([3, 6].map((n) => existsSync(join(folder, anId(n), '0')))).to.deep.equal([true, true]);
    expect(readdirSync(join(folder, anId(4))), 'a trace stays').to.deep.equal([]);
  });

  it('records the owner of a log, by the link next to the fifo', async () => {
    pump();
    symlinkSync('c'.repeat(16), join(folder, 'pipes', `${ID}.of`));
    symlinkSync('too short', join(folder, 'pipes', `${OTHER}.of`));
    const [own, other] = [fifo(ID), fifo(OTHER)];
    writeSync(own, 'mine\n');
    writeSync(other, 'mine\n');
    await eventually(
      () => existsSync(join(folder, ID, '0')) && existsSync(join(folder, OTHER, '0')),
      'both have a line',
    );
    expect(readlinkSync(join(folder, ID, 'of'))).to.equal('c'.repeat(16));
    expect(readdirSync(join(folder, OTHER))).to.deep.equal(['0']);

    for (const fd of [own, other]) close(fd);
    await eventually(
      () => readdirSync(join(folder, 'pipes')).length === 0,
      'the links go with the fifos',
    );
  });

  it('writes nothing while the disk is full, and continues afterwards', async () => {
    aLog(anId(3), 2 * MIB);
    fifo(anId(3));
    aLog(anId(4), 100);
    age(anId(4), 10_000);
    const { pid = 0 } = pump({ totalBytes: MIB });
    await eventually(
      () => !existsSync(join(folder, anId(4))) && childrenOf(pid).length === 0,
      'it has looked at what is there',
    );
    writeSync(fifo(ID), 'waits\n');
    const seen = fifo(OTHER);
    close(seen);
    await eventually(() => !existsSync(join(folder, 'pipes', OTHER)), 'it has looked at what came');
    expect(linesOf(ID)).to.deep.equal([]);
    rmSync(join(folder, anId(3)), { recursive: true, maxRetries: 5 });
    await eventually(() => records(ID).length === 1, 'it goes on');
    expect(records(ID)).to.deep.equal([['F', 'waits']]);
  });

  it('leaves a part of the disk to others', async function () {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', folder], {
        stdio: 'ignore',
      });
    } catch {
      skipBecause(this, 'this user may not mount a small disk');
    }
    try {
      mkdirSync(join(folder, 'pipes'));
      writeFileSync(join(folder, 'filler'), Buffer.alloc(19.5 * MIB));
      aLog(anId(3), 1_000);
      pump();
      await eventually(() => !existsSync(join(folder, anId(3), '0')), 'an old one made room');
      const fd = fifo(ID);
      writeSync(fd, 'waits\n');
      close(fifo(OTHER));
      await eventually(
        () => !existsSync(join(folder, 'pipes', OTHER)),
        'it has looked at what came',
      );
      expect(linesOf(ID)).to.deep.equal([]);
      rmSync(join(folder, 'filler'));
      await eventually(() => records(ID).length === 1, 'it goes on');
    } finally {
      for (const child of pumps) child.kill('SIGKILL');
      for (const fd of fifos.splice(0)) closeSync(fd);
      execFileSync('umount', ['--lazy', folder]);
    }
  });

  interface Limits {
    readonly fileBytes?: number;
    readonly totalBytes?: number;
    readonly retentionSeconds?: number;
  }

  function pump({
    fileBytes = MIB,
    totalBytes = 1 << 30,
    retentionSeconds = 3_600,
  }: Limits = {}): ChildProcess {
    const child = spawn(
      workshop.launcher,
      ['logs', folder, String(fileBytes), String(totalBytes), String(retentionSeconds)],
      { stdio: ['pipe', 'pipe', 'pipe'], env: {} },
    );
    child.stdin?.on('error', () => undefined);
    pumps.push(child);
    return child;
  }

  function ended(child: ChildProcess): Promise<Ended> {
    return within(collect(child).end, 'it ends');
  }

  /** As the launcher makes one: open for reading too, then named. */
  function fifo(id: string): number {
    const path = join(folder, 'pipes', id);
    execFileSync('mkfifo', [`${path}.new`]);
    const fd = openSync(`${path}.new`, constants.O_RDWR);
    fifos.push(fd);
    renameSync(`${path}.new`, path);
    return fd;
  }

  function close(fd: number): void {
    fifos = fifos.filter((other) => other !== fd);
    closeSync(fd);
  }

  function linesOf(id: string): readonly string[] {
    if (!existsSync(join(folder, id))) return [];
    const files = readdirSync(join(folder, id))
      .map(Number)
      .toSorted((a, b) => a - b);
    try {
      return files
        .map((file) => readFileSync(join(folder, id, String(file)), 'utf8'))
        .join('')
        .split('\n')
        .slice(0, -1);
    } catch {
      return linesOf(id); // removed since it was listed: there is a newer one
    }
  }

  function records(id: string): readonly (readonly string[])[] {
    return linesOf(id).flatMap((line) =>
      RECORD.exec(line)?.slice(1) ? [RECORD.exec(line)?.slice(1) ?? []] : [],
    );
  }

  function anId(n: number): string {
    return `0190d4a5-7b1e-7c3a-9f00-00000000000${n}`;
  }

  function aLog(id: string, bytes: number, owner?: string): void {
    mkdirSync(join(folder, id));
    if (owner !== undefined) symlinkSync(owner, join(folder, id, 'of'));
    writeFileSync(join(folder, id, '0'), `${'x'.repeat(bytes - 1)}\n`);
  }

  function age(id: string, seconds: number): void {
    const then = Date.now() / 1_000 - seconds;
    for (const path of [join(folder, id, '0'), join(folder, id)]) utimesSync(path, then, then);
  }
});
