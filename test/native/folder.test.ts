import { expect } from 'chai';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skipBecause } from '../support/harness/skip-because.ts';
import {
  asRoot,
  collect,
  hostUid,
  openWorkshop,
  orderText,
  readable,
  startOrder,
  startSandbox,
  text,
  within,
  writable,
  type Ended,
  type Workshop,
} from './support.ts';

/** Swaps the folder `a` with a link to the folder outside, as fast as it can. */
const SWAPPING = `
const fs = require('node:fs');
const [volume, outside] = process.argv.slice(1);
process.chdir(volume);
fs.symlinkSync(outside, 'link');
console.log('swapping');
for (;;)
  try {
    fs.renameSync('a', 'folder');
    fs.renameSync('link', 'a');
    fs.renameSync('a', 'link');
    fs.renameSync('folder', 'a');
  } catch {
    try {
      fs.rmSync('a', { recursive: true, force: true });
      if (fs.existsSync('folder')) fs.renameSync('folder', 'a');
      if (!fs.existsSync('link')) fs.symlinkSync(outside, 'link');
    } catch {} // a start makes the folder meanwhile, which is mended next
  }
`;
const ATTEMPTS = 60;

/** Gives a folder the name of one that is missing and its own again, as fast as it can. */
const OFFERING = `
const fs = require('node:fs');
process.chdir(process.argv[1]);
console.log('offering');
for (;;)
  try {
    fs.renameSync('kept', 'missing');
    fs.renameSync('missing', 'kept');
  } catch {
    fs.rmSync('missing', { recursive: true, force: true });
  }
`;

describe('folders of a volume', function () {
  let workshop: Workshop;
  let volume: string;
  let outside: string;

  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());

  beforeEach(() => {
    volume = mkdtempSync(join(tmpdir(), 'sandpool-volume-'));
    outside = mkdtempSync(join(tmpdir(), 'sandpool-outside-'));
    for (const folder of [volume, outside]) chmodSync(folder, 0o755);
    if (asRoot) chownSync(volume, hostUid, hostUid);
    mkdirSync(join(volume, 'a/b'), { recursive: true });
    writeFileSync(join(volume, 'a/b/which'), 'inside');
    writeFileSync(join(volume, 'a/which'), 'inside');
    mkdirSync(join(outside, 'b'));
    for (const path of ['which', 'b/which']) writeFileSync(join(outside, path), 'outside');
  });
  afterEach(() => {
    for (const folder of [volume, outside]) rmSync(folder, { recursive: true, force: true });
  });

  const mounting = (path: string, ...command: readonly string[]) => ({
    command,
    folders: [[volume, path]],
    extraBwrap: ['--bind-fd', '16', '/data'],
  });

  /** What a sandbox writes that may start, or may not. */
  const attempt = async (path: string): Promise<Ended & { readonly ready: string }> => {
    const child = spawn(workshop.launcher, ['start'], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: {},
    });
    const output = collect(child);
    const ready = text(readable(child, 5));
    readable(child, 4).resume();
    writable(child, 3).end(orderText(startOrder(workshop, mounting(path, 'cat', '/data/which'))));
    return { ...(await within(output.end, 'it ends')), ready: await ready };
  };

  it('show the folder and nothing above it, without an open descriptor', async () => {
    const sandbox = await startSandbox(
      workshop,
      mounting('a/./b', 'sh', '-c', 'cat /data/which; ls /data/.. | grep -c ^a$; ls /proc/1/fd'),
    );

    const { stdout } = await within(sandbox.output.end, 'the command ends');

    expect(stdout.slice(0, 8)).to.equal('inside0\n');
    expect(stdout.slice(8).split('\n')).to.not.include('16');
  });

  it('are created if missing, with the owner and mode of the volume', async () => {
    chmodSync(volume, 0o1750);

    const sandbox = await startSandbox(
      workshop,
      mounting('new/one', 'sh', '-c', 'echo kept > /data/file'),
    );
    const { code, stderr } = await within(sandbox.output.end, 'the command ends');

    expect(code, stderr).to.equal(0);
    for (const path of ['new', 'new/one']) {
      const { mode, uid } = statSync(join(volume, path));
      expect([mode & 0o7777, uid], path).to.deep.equal([0o1750, statSync(volume).uid]);
    }
    expect(readdirSync(join(volume, 'new/one'))).to.deep.equal(['file']);
  });

  it('start nothing if the path contains a link, a file or `..`', async () => {
    symlinkSync(outside, join(volume, 'out'));
    symlinkSync('a', join(volume, 'within'));
    symlinkSync('/', join(volume, 'a/top'));
    const reasons: Record<string, string> = {
      out: 'Not a directory',
      'out/b': 'Not a directory',
      within: 'Not a directory',
      'a/top': 'Not a directory',
      'a/which': 'Not a directory',
      'a/which/x': 'Not a directory',
      '..': 'Invalid cross-device link',
      'a/../../x': 'Invalid cross-device link',
    };
    for (const [path, reason] of Object.entries(reasons)) {
      const { stdout, ready, code } = await attempt(path);
      expect([stdout, ready, code], path).to.deep.equal([
        '',
        `the folder ${path} of the volume: ${reason}\n`,
        125,
      ]);
    }
    expect(existsSync(join(outside, 'x'))).to.equal(false);
  });

  it(`never show the target of a link that is swapped in, in ${ATTEMPTS} starts`, async () => {
    const swapper = spawn(process.execPath, ['-e', SWAPPING, volume, outside], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const swapping = collect(swapper);
    await swapping.shows('swapping');
    const seen: string[] = [];
    for (let started = 0; started < ATTEMPTS; started++)
      seen.push((await attempt(started % 2 ? 'a' : 'a/b')).stdout);
    swapper.kill('SIGKILL');
    await swapping.end;

    expect([...new Set(seen)]).to.not.include('outside');
    expect(seen, 'some met the folder').to.include('inside');
  });

  it('keep the owner of a folder that is moved to a missing name at the time', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    mkdirSync(join(volume, 'kept/within'), { recursive: true });
    chmodSync(join(volume, 'kept'), 0o700);
    const { ino } = statSync(join(volume, 'kept'));
    const offerer = spawn(process.execPath, ['-e', OFFERING, volume], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const offering = collect(offerer);
    await offering.shows('offering');
    for (let started = 0; started < ATTEMPTS; started++) await attempt('missing');
    offerer.kill('SIGKILL');
    await offering.end;

    const kept = ['kept', 'missing']
      .map((name) => statSync(join(volume, name), { throwIfNoEntry: false }))
      .find((found) => found?.ino === ino);
    expect([kept?.uid, (kept?.mode ?? 0) & 0o7777]).to.deep.equal([0, 0o700]);
  });
});
