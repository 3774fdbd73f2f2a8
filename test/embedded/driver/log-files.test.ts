import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogsGone } from '../../../src/contracts/sandbox-driver.ts';
import { LogFiles } from '../../../src/embedded/driver/log-files.ts';
import { rejection } from '../../support/harness/rejection.ts';

const ID = '0190d4a5-7b1e-7c3a-9f00-000000000001';
const ALL = { tailLines: 10_000, limitBytes: 1 << 20 };
const record = (text: string, kind = 'F', second = 0): string =>
  `2026-01-31T12:00:${String(second).padStart(2, '0')}.000000000Z stdout ${kind} ${text}\n`;

describe('the files of a log', () => {
  let folder: string;
  let files: LogFiles;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-logs-'));
    mkdirSync(join(folder, 'pipes'));
    files = new LogFiles(folder);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const put = (begins: number, text: string): number => {
    mkdirSync(join(folder, ID), { recursive: true });
    writeFileSync(join(folder, ID, String(begins)), text);
    return begins + text.length;
  };
  const texts = async (request = ALL): Promise<readonly string[]> =>
    (await files.tail(ID, request)).lines.map(({ text }) => String(text));

  it('are empty in a new folder, and gone once nobody can write', async () => {
    mkdirSync(join(folder, ID));
    writeFileSync(join(folder, 'pipes', ID), '');
    expect(await files.tail(ID, ALL)).to.deep.equal({ lines: [], truncated: false, next: '0' });
    rmSync(join(folder, 'pipes', ID));
    expect(await rejection(files.tail(ID, ALL))).to.be.instanceOf(LogsGone);
    expect(
      await rejection(
        files.follow(ID, '0', { signal: new AbortController().signal, ended: () => true }).next(),
      ),
    ).to.be.instanceOf(LogsGone);
  });

  it('are read as one, with joined lines, and report that older ones are gone', async () => {
    const next = put(5_000, record('one') + record('tw', 'P'));
    const end = put(next, record('o') + record('three'));
    const tail = await files.tail(ID, ALL);
    expect(tail.lines.map(({ text }) => String(text))).to.deep.equal(['one', 'two', 'three']);
    expect(tail).to.include({ truncated: true, next: String(end) });
  });

  it('skip lines that a crash truncated, and wait for the end of a partial line', async () => {
    put(
      0,
      `${record('one')}2026-01-31T12:00\n${record('two')}2026-01-31T12:00:00.000000000Z stdout F thr`,
    );
    expect(await texts()).to.deep.equal(['one', 'two']);
  });

  it('are read backwards at any length', async () => {
    put(0, Array.from({ length: 20_000 }, (_, n) => record(`line ${n}`)).join(''));
    expect(await texts({ ...ALL, tailLines: 2 })).to.deep.equal(['line 19998', 'line 19999']);
    expect((await texts({ ...ALL, tailLines: 10_000 }))[0]).to.equal('line 10000');
  });

  it('omit lines older than requested, without reporting truncation', async () => {
    put(0, record('one', 'F', 1) + record('two', 'F', 2) + record('three', 'F', 3));
    const since = Date.parse('2026-01-31T12:00:02.000Z');
    expect(await files.tail(ID, { ...ALL, since })).to.include({ truncated: false });
    expect(await texts({ ...ALL, ...{ since } })).to.deep.equal(['two', 'three']);
  });

  it('return the end of a line that exceeds the limit', async () => {
    put(0, record('x'.repeat(100)));
    const tail = await files.tail(ID, { tailLines: 1, limitBytes: 10 });
    expect(tail.lines.map(({ text }) => String(text))).to.deep.equal(['x'.repeat(10)]);
    expect(tail.truncated).to.equal(true);
  });
});
