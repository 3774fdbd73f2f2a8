import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { create } from 'tar';
import { FileRefused } from '../../src/contracts/files.ts';
import { eventually } from '../support/harness/eventually.ts';
import { localFolderFiles } from '../support/fakes/local-folder-files.ts';
import {
  aCliDaemon,
  cliHere,
  startCliInTerminal,
  type CliDaemon,
  type CliEnd,
} from './cli-support.ts';

describe('sandpool cp during a transfer', function () {
  const files = localFolderFiles();
  let daemon: CliDaemon;
  let sandpool: (...args: readonly string[]) => Promise<CliEnd>;
  let here: string;
  /** Files of this daemon's sandboxes are this machine's: a folder stands for the sandbox's. */
  let there: string;
  let id: string;
  before(async () => {
    daemon = await aCliDaemon({ files });
    sandpool = (...args) => cliHere(args, { SANDPOOL_DATA_DIR: daemon.dataDir });
    id = (await sandpool('sandboxes', 'create')).stdout.trim();
  });
  after(() => daemon.close());
  beforeEach(() => {
    here = mkdtempSync(join(tmpdir(), 'sandpool-here-'));
    there = mkdtempSync(join(tmpdir(), 'sandpool-there-'));
  });
  afterEach(() => {
    for (const folder of [here, there])
      rmSync(folder, { recursive: true, maxRetries: 10, retryDelay: 20 });
  });

  const QUIET = { code: 0, stdout: '', stderr: '' };

  it('leaves a remote file unchanged if the transfer fails, and reports it', async () => {
    writeFileSync(join(here, 'a'), Buffer.alloc(30_000_000)); // more than buffers on the way hold
    writeFileSync(join(there, 'a'), 'old');
    const { write } = files;
    files.write = async (_place, { content }) => {
      for await (const _ of content) break;
      throw new FileRefused('no-space', 'full');
    };
    const full = await sandpool('cp', join(here, 'a'), `${id}:${there}/a`);
    let writing = 0;
    let written = 0;
    files.write = async (...call) => {
      writing += 1;
      daemon.cut();
      try {
        return await write(...call);
      } finally {
        written += 1;
      }
    };
    const cut = await sandpool('cp', join(here, 'a'), `${id}:${there}/a`);
    files.write = write;

    expect([full.code, full.stderr.replace(/, request \S+/, '').split('\n')]).to.deep.equal([
      1,
      [
        'sandpool: the sandbox has no space left; existing data is unchanged (NO_SPACE)',
        '  most files of a sandbox are in memory; delete some of them',
        `  ${there}/a in the sandbox is unchanged`,
        '',
      ],
    ]);
    expect(cut.code).to.equal(1);
    expect(cut.stderr)
      .to.match(
        /^sandpool: the copy of a was interrupted after .* of 28\.6 MiB, \d+ %: cannot connect to /,
      )
      .and.include(`\n  ${there}/a in the sandbox is unchanged\n`)
      .and.match(/\n {2}it cannot be resumed: copy again from the beginning\n$/);
    await eventually(() => writing > 0 && written === writing, 'the write that was cut has ended');
    await eventually(() => readdirSync(there).join() === 'a', 'nothing is left behind there');
    expect(readFileSync(join(there, 'a'), 'utf8')).to.equal('old');
  });

  it('leaves a local file unchanged if the transfer fails, and reports it', async () => {
    writeFileSync(join(here, 'a'), 'old');
    writeFileSync(join(there, 'a'), Buffer.alloc(3_000_000));
    const { open } = files;
    files.open = async (...args) => {
      const opened = await open(...args);
      const cut = async function* () {
        let left = 1_000_000;
        for await (const piece of opened.content as AsyncIterable<Buffer>) {
          yield piece;
          left -= piece.length;
          if (left < 0) throw new Error('the way is lost');
        }
      };
      return { ...opened, content: Readable.from(cut(), { objectMode: false }) };
    };
    const end = await sandpool('cp', `${id}:${there}/a`, join(here, 'a'));
    const piped = await sandpool('cp', `${id}:${there}/a`, '-');
    files.open = open;

    expect([end.code, end.stderr.split('\n').slice(1)]).to.deep.equal([
      1,
      [`  ${here}/a is unchanged`, '  it cannot be resumed: copy again from the beginning', ''],
    ]);
    expect(end.stderr).to.match(
      /^sandpool: the copy of a was interrupted after .* of 2\.9 MiB, \d+ %: the connection to \S+ broke\n/,
    );
    expect(piped.stderr).to.include('only the beginning was written');
    expect(readdirSync(here)).to.deep.equal(['a']);
    expect(readFileSync(join(here, 'a'), 'utf8')).to.equal('old');
  });

  it('names the missing program that folders need in a container', async () => {
    mkdirSync(join(here, 'src'));
    mkdirSync(join(there, 'src'));
    const { readTree, writeTree } = files;
    files.readTree = async () => {
      throw new FileRefused('unsupported', 'the container has no program that files need: tar');
    };
    files.writeTree = async (_place, archive) => {
      archive.destroy();
      throw new FileRefused('unsupported', 'the container has no program that files need: tar');
    };
    const ends = [
      await sandpool('cp', '-r', join(here, 'src'), `${id}:${there}/copy`),
      await sandpool('cp', '-r', `${id}:${there}/src`, join(here, 'back')),
    ];
    Object.assign(files, { readTree, writeTree });

    for (const { code, stderr } of ends) {
      expect(code).to.equal(1);
      expect(stderr).to.include('has no program that files need: tar');
    }
    expect(readdirSync(here)).to.deep.equal(['src']);
  });

  it('lists the files of a folder that are missing in its archive', async () => {
    mkdirSync(join(there, 'src'));
    for (const name of ['kept', 'secret']) writeFileSync(join(there, 'src', name), name);
    const { readTree } = files;
    files.readTree = async () =>
      Readable.from(create({ cwd: join(there, 'src'), portable: true }, ['./kept']), {
        objectMode: false,
      });
    const end = await sandpool('cp', `${id}:${there}/src`, join(here, 'back'));
    files.readTree = readTree;

    expect(end).to.deep.equal({
      ...QUIET,
      stderr:
        'sandpool: skipped secret, which can’t be read there, or was created during the copy\n',
    });
  });

  it('shows its progress on a terminal', async () => {
    writeFileSync(join(here, 'big'), randomBytes(2_000_000));
    const copying = startCliInTerminal(['cp', join(here, 'big'), `${id}:${there}/big`], {
      SANDPOOL_DATA_DIR: daemon.dataDir,
    });
    expect(await copying.ended).to.equal(0);
    expect(copying.output()).to.match(/big: \d+(\.\d)? KiB of 1\.9 MiB, \d+ % {2}\[#*-*\]/);
    writeFileSync(join(here, 'small'), randomBytes(900_000));
    const small = startCliInTerminal(['cp', join(here, 'small'), `${id}:${there}/small`], {
      SANDPOOL_DATA_DIR: daemon.dataDir,
    });
    expect(await small.ended).to.equal(0);
    expect(small.output()).not.to.include('small:');
  });
});
