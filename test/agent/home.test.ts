import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtAgent } from '../../local-cluster/built-agent.ts';
import { agentOrder } from '../../src/k8s/streams/agent-order.ts';
import { buildLauncher } from '../support/harness/a-spawned-driver.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const HOME = '/home/own';

describe('/home/user of a Pod', () => {
  let folder: string;
  let homes: string;
  beforeEach(() => {
    buildLauncher();
    folder = mkdtempSync(join(tmpdir(), 'sandpool-home-'));
    chmodSync(folder, 0o755);
    copyFileSync(builtAgent(), join(folder, 'launcher'));
    homes = join(folder, 'home');
    mkdirSync(join(homes, 'own/sub'), { recursive: true });
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  /** What a command of the agent says, in a sandbox whose /home is of the test. */
  const said = (
    script: string,
    { cwd, home = HOME, bind = '--bind' }: { cwd?: string; home?: string; bind?: string } = {},
  ): string => {
    const order = agentOrder({ argv: ['/bin/sh', '-c', script], cwd, told: 'ended ' });
    const { stdout, stderr } = spawnSync(
      'bwrap',
      [
        ...['--dev-bind', '/', '/', bind, homes, '/home'],
        ...['--setenv', 'HOME', home, join(folder, 'launcher'), 'run', String(order.length)],
      ],
      { input: order, encoding: 'utf8', timeout: NEVER_COMES_MS },
    );
    return (stdout + stderr).replace(/^\d+\n/, '').replaceAll(/ended 0\n/g, '');
  };

  it('is an alias of the home for every program', () => {
    expect(said('cd /home/user/sub && pwd && pwd -P')).to.equal('/home/user/sub\n/home/own/sub\n');
    expect(said('pwd; readlink /home/user', { cwd: '/home/user' })).to.equal(`${HOME}\n${HOME}\n`);
  });

  it('maps to the home only as a working folder if no link can be created', () => {
    const bind = '--ro-bind';
    expect(said('pwd', { bind, cwd: '/home/user' })).to.equal('/home/own\n');
    expect(said('pwd', { bind, cwd: '/home/user/sub' })).to.equal('/home/own/sub\n');
    expect(said('[ -e /home/user ] || echo none', { bind })).to.equal('none\n');
    expect(said('pwd', { bind, cwd: '/home/user/no' })).to.include('No such file or directory');
    expect(said('pwd', { bind, cwd: '/home/username' })).to.include('No such file or directory');
  });

  it("stays the image's own folder if the image has one", () => {
    mkdirSync(join(homes, 'user'));
    expect(said('pwd -P', { cwd: '/home/user' })).to.equal('/home/user\n');
    expect(said('pwd', { cwd: '/home/user/sub' })).to.include('No such file or directory');
  });

  it('leads nowhere without a home', () => {
    for (const home of ['/home/none', '/home/user', 'own', ''])
      expect(said('[ -L /home/user ] || echo none', { home })).to.equal('none\n');
  });
});
