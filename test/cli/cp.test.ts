import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { localFolderFiles } from '../support/fakes/local-folder-files.ts';
import { aCliDaemon, cli, cliHere, type CliDaemon, type CliEnd } from './cli-support.ts';

describe('sandpool cp', function () {
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

  for (const size of [0, 1, 524_287, 524_288, 524_289, 1_600_000]) {
    it(`copies ${size} bytes in both directions unchanged`, async () => {
      const bytes = randomBytes(size);
      writeFileSync(join(here, 'a'), bytes, { mode: 0o750 });
      expect(await sandpool('cp', join(here, 'a'), `${id}:${there}/b`)).to.deep.equal(QUIET);
      expect(readFileSync(join(there, 'b')).equals(bytes)).to.equal(true);
      expect(await sandpool('cp', `${id}:${there}/b`, join(here, 'c'))).to.deep.equal(QUIET);
      expect(readFileSync(join(here, 'c')).equals(bytes)).to.equal(true);
      expect(statSync(join(here, 'c')).mode & 0o777).to.equal(0o750);
      expect([readdirSync(there), readdirSync(here).sort()]).to.deep.equal([['b'], ['a', 'c']]);
    });
  }

  it('accepts names with spaces, quotes, line feeds, colons, and a leading dash', async () => {
    for (const name of ['a b', "it's", 'q"q', '$(touch x)', 'new\nline', 'c:d', '-r', '--', '*']) {
      writeFileSync(join(here, name), name);
      expect(await sandpool('cp', join(here, name), `${id}:${there}/`)).to.deep.equal(QUIET);
      expect(readFileSync(join(there, name), 'utf8')).to.equal(name);
      rmSync(join(here, name));
      expect(await sandpool('cp', `${id}:${there}/${name}`, here)).to.deep.equal(QUIET);
      expect(readFileSync(join(here, name), 'utf8')).to.equal(name);
    }
    expect(existsSync('x')).to.equal(false);
  });

  it('puts a file into a folder under its own name, and otherwise under the given name', async () => {
    writeFileSync(join(here, 'a'), 'new');
    mkdirSync(join(there, 'folder'));
    writeFileSync(join(there, 'old'), 'old');
    for (const target of ['folder', 'folder/', 'old'])
      expect(await sandpool('cp', join(here, 'a'), `${id}:${there}/${target}`)).to.deep.equal(
        QUIET,
      );
    expect(readFileSync(join(there, 'folder/a'), 'utf8')).to.equal('new');
    expect(readFileSync(join(there, 'old'), 'utf8')).to.equal('new');
  });

  it('resolves a path without / from the working folder of commands, and removes the part before ..', async () => {
    const { onExec } = daemon.operations.driver;
    daemon.operations.driver.onExec = async (instance, request, signal) => {
      expect(request.argv).to.deep.equal(['/bin/sh', '-c', 'pwd']);
      const argv = ['/bin/sh', '-c', `cd ${there} && pwd`];
      return await onExec(instance, { ...request, argv }, signal);
    };
    mkdirSync(join(there, 'work'));
    writeFileSync(join(here, 'a'), 'a');
    const ends = [
      await sandpool('cp', join(here, 'a'), `${id}:work`),
      await sandpool('cp', join(here, 'a'), `${id}:work/../b`),
    ];
    daemon.operations.driver.onExec = async () => ({ exitCode: 127 });
    const lost = await sandpool('cp', join(here, 'a'), `${id}:b`);
    daemon.operations.driver.onExec = onExec;

    expect(ends).to.deep.equal([QUIET, QUIET]);
    expect(readFileSync(join(there, 'work/a'), 'utf8')).to.equal('a');
    expect(readFileSync(join(there, 'b'), 'utf8')).to.equal('a');
    expect([lost.code, lost.stderr]).to.deep.equal([
      1,
      'sandpool: relative paths need a shell, which the sandbox lacks\n' +
        `  use an absolute path, such as ${id}:/tmp/note\n`,
    ]);
  });

  it('reads the standard input and writes to the standard output', async () => {
    const env = { SANDPOOL_DATA_DIR: daemon.dataDir };
    expect(await cli(['cp', '-', `${id}:${there}/in`], env, 'hello\n')).to.deep.equal(QUIET);
    expect(readFileSync(join(there, 'in'), 'utf8')).to.equal('hello\n');
    expect(await cli(['cp', `${id}:${there}/in`, '-'], env)).to.deep.equal({
      ...QUIET,
      stdout: 'hello\n',
    });
    expect((await cli(['cp', '-', `${id}:${there}`], env, 'x')).stderr).to.include(
      'is a folder: name the file',
    );
  });

  it('copies a folder in both directions, with its links as links', async () => {
    mkdirSync(join(here, 'src/deep er'), { recursive: true });
    writeFileSync(join(here, 'src/deep er/a'), randomBytes(700_000));
    writeFileSync(join(here, 'src/.hidden'), 'h', { mode: 0o700 });
    symlinkSync('deep er/a', join(here, 'src/link'));
    expect(await sandpool('cp', join(here, 'src'), `${id}:${there}`)).to.deep.equal(QUIET);
    expect(await sandpool('cp', join(here, 'src'), `${id}:${there}/copy`)).to.deep.equal(QUIET);
    for (const folder of [join(there, 'src'), join(there, 'copy')]) {
      expect(readdirSync(folder).sort()).to.deep.equal(['.hidden', 'deep er', 'link']);
      expect(
        readFileSync(join(folder, 'deep er/a')).equals(readFileSync(join(here, 'src/deep er/a'))),
      ).to.equal(true);
    }
    expect(await sandpool('cp', `${id}:${there}/copy`, join(here, 'back'))).to.deep.equal(QUIET);
    expect(readlinkSync(join(here, 'back/link'))).to.equal('deep er/a');
    expect(statSync(join(here, 'back/.hidden')).mode & 0o777).to.equal(0o700);
    expect(await sandpool('cp', `${id}:${there}/copy`, join(here, 'back'))).to.deep.equal(QUIET);
    expect(existsSync(join(here, 'back/copy/deep er/a'))).to.equal(true);
  });

  it('keeps the archive of a sandbox within the target folder', async () => {
    mkdirSync(join(there, 'evil'));
    symlinkSync(here, join(there, 'evil/out'));
    writeFileSync(join(there, 'planted'), 'planted');
    // A link out of the folder, then a file behind it; and one that climbs out.
    const archive = join(there, 'evil.tar');
    for (const args of [
      ['-cf', archive, '-C', join(there, 'evil'), 'out'],
      ['-rPf', archive, '--transform', 's,^,out/,', '-C', there, 'planted'],
      ['-rPf', archive, '--transform', 's,^,../,', '-C', there, 'planted'],
    ]) {
      expect(spawnSync('tar', args).status).to.equal(0);
    }
    const { readTree } = files;
    files.readTree = async () => createReadStream(archive);
    const end = await sandpool('cp', `${id}:${there}/evil`, join(here, 'in'));
    files.readTree = readTree;
    expect(end).to.deep.equal({
      code: 0,
      stdout: '',
      stderr: [
        `sandpool: skipped out, which is a link that leads out of the folder, to ${here}\n`,
        `sandpool: skipped ../planted, which leads out of the folder\n`,
      ].join(''),
    });
    expect(readdirSync(here)).to.deep.equal(['in']);
  });

  it('lists omitted entries of a folder: links out of it, and special files', async () => {
    mkdirSync(join(there, 'src/sub'), { recursive: true });
    writeFileSync(join(there, 'src/kept'), 'kept');
    symlinkSync('../kept', join(there, 'src/sub/inside'));
    symlinkSync('nothing', join(there, 'src/dangling'));
    symlinkSync('../../etc', join(there, 'src/sub/up'));
    symlinkSync('..', join(there, 'src/sub/top'));
    symlinkSync('sub/top/..', join(there, 'src/climbing'));
    symlinkSync('/etc/hostname', join(there, 'src/absolute'));
    expect(spawnSync('mkfifo', [join(there, 'src/pipe')]).status).to.equal(0);
    const end = await sandpool('cp', `${id}:${there}/src`, join(here, 'back'));
    expect([end.code, end.stderr.trim().split('\n').sort()]).to.deep.equal([
      0,
      [
        'sandpool: skipped absolute, which is a link that leads out of the folder, to /etc/hostname',
        'sandpool: skipped climbing, which is a link that leads out of the folder, to sub/top/..',
        'sandpool: skipped pipe, which is neither a file, a folder nor a link',
        'sandpool: skipped sub/up, which is a link that leads out of the folder, to ../../etc',
      ],
    ]);
    expect(readdirSync(join(here, 'back')).sort()).to.deep.equal(['dangling', 'kept', 'sub']);
    expect(readlinkSync(join(here, 'back/dangling'))).to.equal('nothing');
    expect(readFileSync(join(here, 'back/sub/inside'), 'utf8')).to.equal('kept');

    expect(await sandpool('cp', join(there, 'src'), `${id}:${there}/copy`)).to.deep.equal({
      code: 0,
      stdout: '',
      stderr: 'sandpool: skipped pipe, which is neither a file, a folder nor a link\n',
    });
    expect(readlinkSync(join(there, 'copy/absolute'))).to.equal('/etc/hostname');
    expect(readlinkSync(join(there, 'copy/sub/up'))).to.equal('../../etc');
  });

  it('fails if a file of a folder cannot be written locally', async () => {
    mkdirSync(join(there, 'src'));
    writeFileSync(join(there, 'src/a'), 'a');
    mkdirSync(join(here, 'src/a/kept'), { recursive: true });
    const end = await sandpool('cp', `${id}:${there}/src`, here);
    expect([end.code, end.stderr]).to.deep.equal([
      1,
      `sandpool: ${here}/src/a can’t be used: ENOTEMPTY\n`,
    ]);
  });

  it('explains an error, and leaves nothing half done', async () => {
    writeFileSync(join(here, 'a'), 'a');
    const fails = async (from: string, to: string): Promise<string> => {
      const end = await sandpool('cp', from, to);
      expect([end.code, end.stdout]).to.deep.equal([1, '']);
      return end.stderr;
    };
    expect(await fails(`${id}:${there}/none`, here)).to.equal(
      `sandpool: there is no ${there}/none in the sandbox\n`,
    );
    expect(await fails(join(here, 'none'), `${id}:${there}`)).to.equal(
      `sandpool: ${here}/none does not exist\n`,
    );
    expect(await fails(join(here, 'a'), `${id}:${there}/no/such/a`)).to.equal(
      `sandpool: there is no folder ${there}/no/such in the sandbox\n`,
    );
    expect(await fails(join(here, 'a'), `${id}:${there}/new/`)).to.include('there is no folder');
    expect(await fails(`${id}:/dev/null`, here)).to.include('is neither a file nor a folder');
    expect(await fails(`${id}:/proc/version`, here)).to.equal(
      'sandpool: the kernel generates /proc/version while it is read\n' +
        `  print it with a command: sandpool exec ${id} -- cat /proc/version\n`,
    );
    expect(await fails('a', 'b')).to.include('neither path is in a sandbox');
    expect(await fails(`${id}:/a`, `${id}:/b`)).to.include('both paths are in sandboxes');
    expect(await fails(`${id}:`, here)).to.include(`there is no path after ${id}:`);
    expect(await fails(join(here, 'a'), '0190d4a5-7b1e-7c3a-9f00-00000000dead:/tmp/a')).to.include(
      'SANDBOX_NOT_FOUND',
    );
    expect([readdirSync(here), readdirSync(there)]).to.deep.equal([['a'], []]);
  });
});
