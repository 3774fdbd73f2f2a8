import { expect } from 'chai';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const SYSCTLS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
  'net/ipv4/ip_forward',
];
/**
 * Starts a real node with a Pod, says its process's id, and ends it in order when its input ends.
 */
const STARTER = fileURLToPath(new URL('../support/cluster/real-node-process.ts', import.meta.url));

/** What a node may change of a machine. */
const machine = (): Readonly<Record<string, readonly string[]>> => ({
  mounts: lines(readFileSync('/proc/mounts', 'utf8')),
  links: lines(execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' })).map(
    (line) => line.split(': ')[1] ?? '',
  ),
  routes: lines(execFileSync('ip', ['route'], { encoding: 'utf8' })),
  sysctls: SYSCTLS.map((name) => `${name} ${readFileSync(`/proc/sys/${name}`, 'utf8').trim()}`),
  cgroups: cgroups(),
  // Those of daemons that other tests start come and go.
  folders: ['/run', '/var/lib', '/var/log', '/opt', '/etc'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => !name.startsWith('sandpool-'))
      .map((name) => `${folder}/${name}`),
  ),
});
const lines = (text: string): readonly string[] => text.trim().split('\n').sort();

const cgroups = (): readonly string[] => {
  const below = (folder: string): readonly string[] =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${folder}/${name}`);
  const places = below('/sys/fs/cgroup');
  return [...places, ...places.flatMap(below)].filter((path) =>
    /sandpool-node|kube|pod/.test(path),
  );
};

// A suite of its own, alone on the machine: two nodes at a time would share a network, too.
describe('a machine after a test with a real node', function () {
  before(function () {
    if (process.env['TEST_REAL_NODE'] === undefined)
      skipBecause(this, 'needs what script/real-node makes: script/test long real-node');
  });

  const started = async (): Promise<ChildProcess> => {
    const starter = spawn(process.execPath, ['--import', 'tsx', STARTER], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const signal = AbortSignal.timeout(NEVER_COMES_MS);
    await Promise.race([
      once(starter.stdout, 'data', { signal }),
      once(starter, 'exit', { signal }).then(() => {
        throw new Error('it did not start');
      }),
    ]);
    return starter;
  };

  it('has its earlier mounts, links, routes, sysctls, cgroups and folders', async () => {
    const before = machine();
    const starter = await started();
    expect(machine()['links']).to.not.deep.equal(before['links']);
    expect(cgroups()).to.not.be.empty;

    const ended = once(starter, 'exit');
    starter.stdin?.end();
    const [code] = (await ended) as [number | null];

    expect(code).to.equal(0);
    expect(machine()).to.deep.equal(before);
  });

  it('recovers even from a kill -9 of the starter, with nothing left running', async () => {
    const before = machine();
    const starter = await started();
    const ended = once(starter, 'exit');
    starter.kill('SIGKILL');
    await ended;

    await eventually(
      () => JSON.stringify(machine()) === JSON.stringify(before),
      'all is put back',
    ).catch(() => undefined); // told below
    expect(machine()).to.deep.equal(before);
  });
});
