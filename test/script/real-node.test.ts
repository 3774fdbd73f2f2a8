import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { watchedFolder } from '../../local-cluster/watched-folder.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const SCRIPT = fileURLToPath(new URL('../../script/real-node', import.meta.url));

describe('script/real-node', function () {
  let folder: string;
  beforeEach(function () {
    if (process.getuid?.() !== 0)
      skipBecause(this, 'needs root, or the script ends before what is tried here');
    folder = watchedFolder('real-node-script');
    mkdirSync(join(folder, 'bin'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const program = (name: string, text: string): void => {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, 'bin', name), 0o755);
  };
  const env = (): NodeJS.ProcessEnv => ({
    ...process.env,
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    XDG_CACHE_HOME: join(folder, 'cache'),
  });
  const ended = (command = SCRIPT, ...args: readonly string[]): string => {
    const { status, stdout } = spawnSync(command, args, {
      env: env(),
      encoding: 'utf8',
      timeout: NEVER_COMES_MS,
    });
    return `${status}: ${stdout.trimEnd()}`;
  };

  it('skips with a reason if programs cannot be linked for an image', () => {
    program('cc', 'exit 1');
    expect(ended()).to.equal(
      '3: no real node here: cc can not link programs with -static: gcc and libc6-dev are missing',
    );
  });

  it('skips with a reason if overlay file systems cannot be mounted', () => {
    program('cc', 'exit 0');
    program('mount', 'exit 32');
    expect(ended()).to.match(
      /^3: no real node here: (overlay file systems can not be mounted in|cgroup|namespaces|a kubelet needs)/u,
    );
  });

  it('skips with the missing controllers if cgroup v2 lacks some', function () {
    program('cc', 'exit 0');
    const inside = `mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && echo 'cpuset cpu io' >cgroup.controllers && echo cpu >cgroup.subtree_control && exec ${SCRIPT}`;
    if (!ended('unshare', '--mount', '--pid', '--fork', 'true').startsWith('0'))
      skipBecause(this, 'namespaces can not be made here');
    expect(ended('unshare', '--mount', 'bash', '-c', inside)).to.equal(
      '3: no real node here: cgroup v2 has no controller for memory pids, or does not let it be enabled',
    );
  });
});
