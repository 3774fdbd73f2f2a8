import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processesOfBare } from '../../../src/embedded/spawner/sandbox/bare-homes.ts';
import { isAlive } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { pathsOf } from '../../../src/embedded/spawner/protocol.ts';
import { freePorts } from '../../../local-cluster/control-plane/free-ports.ts';
import { buildLauncher, isOver } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { dialled } from '../../support/harness/dialled.ts';
import { echoServer } from '../../support/builders/echo-server.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { FactLog } from '../../support/harness/fact-log.ts';
import { aDefinition, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const never = new AbortController().signal;
const NOT_ISOLATED = 'sandboxes are not isolated (isolation: none)';

describe('isolation none', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver({ isolation: 'none', bwrapPath: '/no/such/bwrap' });
  });
  after(() => spawned.close());

  const homeOf = (id: string): string => spawned.noteOf(id).home ?? '';
  const ended = async (
    id: string,
    revision: Parameters<WatchedDriver['driver']['retire']>[1],
  ): Promise<void> => {
    await spawned.driver.retire(id, revision);
    await spawned.log.when(id, 'gone', 120_000);
  };

  it('makes a machine without bubblewrap usable', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sandpool-test-'));
    const refused = await rejection(spawned.again({ isolation: 'auto', dataDir }).watch(() => {}));
    rmSync(dataDir, { recursive: true, maxRetries: 5 });
    expect(refused.message).to.include('apt-get install bubblewrap').and.include('isolation');
  });

  it('adds a warning to the readiness', () => {
    const { isolation, warnings, problems } = spawned.driver.describe();
    expect([isolation, problems]).to.deep.equal(['none', []]);
    expect(warnings.some((warning) => warning.startsWith(NOT_ISOLATED))).to.equal(true);
  });

  it('runs processes of this machine, not as root, in a folder of their own', async () => {
    const { id } = await spawned.launched();
    const home = homeOf(id);
    const ours = ['pid', 'mnt', 'net', 'user']
      .map((name) => `${readlinkSync(`/proc/self/ns/${name}`)}\n`)
      .join('');
    expect(
      await spawned.sh(id, 'for n in pid mnt net user; do readlink /proc/self/ns/$n; done'),
    ).to.equal(ours);
    expect(await spawned.sh(id, 'grep Seccomp: /proc/self/status')).to.equal(
      /^Seccomp:.*\n/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[0],
    );
    expect(await spawned.sh(id, 'id -u; pwd; echo $HOME')).to.equal(
      `${spawned.noteOf(id).uid}\n${home}\n${home}\n`,
    );
    expect(statSync(home)).to.include({ uid: spawned.noteOf(id).uid, mode: 0o40700 });
  });

  it('forwards requests to its own ports only', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'without root all of them have the same uid');
    const dial = (id: string, port: number) => dialled(spawned.driver, id, port);
    const [port = 0] = await freePorts(1); // of the host, on whose network it is
    const own = await spawned.launched(anOrder(aDefinition({ argv: echoServer(port) })));
    await eventually(
      () =>
        dial(own.id, port).then(
          (stream) => {
            stream.destroy();
            return true;
          },
          () => false,
        ),
      'its port is listened on',
    );
    const other = await spawned.launched();
    expect((await rejection(dial(other.id, port))).message).to.contain(
      "held by a process that is not the sandbox's",
    );
  });

  it('uses that folder as /home/sandbox in templates and requests', async () => {
    const definition = aDefinition({
      argv: ['sh', '-c', 'pwd > ~/started-in; echo $FROM_TEMPLATE >> ~/started-in; exec sleep 60'],
      env: { FROM_TEMPLATE: 'x' },
    });
    const { id } = await spawned.launched(anOrder(definition));
    const home = homeOf(id);
    await eventually(
      async () => (await spawned.sh(id, 'cat ~/started-in')) === `${home}\nx\n`,
      'it wrote where it is',
    );
    expect(await spawned.sh(id, 'mkdir ~/a; echo $FROM_TEMPLATE')).to.equal('x\n');
    expect(await spawned.sh(id, 'pwd', { cwd: '/home/sandbox/a' })).to.equal(`${home}/a\n`);
    expect(await spawned.sh(id, 'pwd', { cwd: '/usr' })).to.equal('/usr\n');
  });

  it('refuses a file with metadata on a file system without metadata', async function () {
    const { id } = await spawned.launched();
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-test-'));
    const mounted = spawnSync('mount', ['-t', 'ramfs', '-o', 'mode=0777', 'ramfs', folder]);
    try {
      if (mounted.status !== 0) return skipBecause(this, 'nothing can be mounted');
      chmodSync(folder, 0o777);
      const place = { id, path: Buffer.from(`${folder}/file`) };
      const content = Buffer.from('x');
      const request = { content, overwrite: true, parents: false, metadata: { a: 'b' } };
      const refused = await rejection(spawned.driver.files.write(place, request, never));

      expect(refused).to.include({ problem: 'no-metadata' });
      expect(readdirSync(folder)).to.deep.equal([]);
    } finally {
      if (mounted.status === 0) spawnSync('umount', [folder]);
      rmSync(folder, { recursive: true });
    }
  });

  it('explains why a sandbox could not start', async () => {
    const reasons: Readonly<Record<string, Parameters<typeof aDefinition>[0]>> = {
      'command not found: /no/such': { argv: ['/no/such'] },
      'the command could not be run: chdir to /no/such: No such file or directory': {
        workingDir: '/no/such',
      },
    };
    for (const [reason, container] of Object.entries(reasons)) {
      const { id } = await spawned.driver.launch(anOrder(aDefinition(container)), permitted);
      expect((await spawned.log.when(id, 'gone')).vitals).to.include({ reason });
    }
  });

  it('has terminals', async () => {
    const { id } = await spawned.launched();
    const terminal = await spawned.driver.attach(id, { argv: ['sh'], cols: 101, rows: 33 });
    let shown = '';
    terminal.stream.on('data', (bytes: Buffer) => {
      shown += String(bytes);
    });
    terminal.stream.write('stty size; echo x > /dev/tty; exit 5\r');
    expect(await terminal.exit).to.equal(5);
    expect(shown).to.include('33 101');
  });

  it('ends with all its child processes, and removes its files', async function () {
    const { id, revision } = await spawned.launched();
    const [note, running, home] = [spawned.noteOf(id), spawned.runningOf(id), homeOf(id)];
    await spawned.sh(
      id,
      'setsid sleep 941 >/dev/null 2>&1 & setsid sh -c "while :; do sleep 0.01 & done" >/dev/null 2>&1 & : ',
    );
    const depth = 'd'.repeat(200);
    await spawned.sh(
      id,
      `i=0; while [ $i -lt 40 ]; do mkdir ${depth} && cd -P ${depth}; i=$((i+1)); done; touch deepest`,
    );
    await spawned.sh(
      id,
      'mkdir many locked && cd many && seq 1 20000 | xargs touch; cd ..; mkdir locked/in && touch locked/in/x && chmod 0 locked/in locked',
    );
    await ended(id, revision);
    expect(isOver(note, running)).to.equal(true);
    expect(existsSync(home)).to.equal(false);
    expect(note.cgroups.filter((folder) => existsSync(folder))).to.deep.equal([]);
    expect(processesOfBare({ home, uid: note.uid }, process.getuid?.() === 0)).to.deep.equal([]);
  });

  it('is found again after a kill of the spawner, and then ended', async () => {
    const { id, revision } = await spawned.launched();
    const [home, running] = [homeOf(id), spawned.runningOf(id)];
    await spawned.sh(id, 'echo kept > ~/file');
    const spawner = spawned.spawnerPid();
    process.kill(spawner, 'SIGKILL');
    await eventually(
      () =>
        ![0, spawner].includes(spawned.spawnerPid()) &&
        spawned.driver.describe().problems.length === 0,
      'another spawner is there',
    );
    expect(isAlive(running.init)).to.equal(true);
    expect(await spawned.sh(id, 'cat ~/file')).to.equal('kept\n');
    await ended(id, revision);
    expect([isAlive(running.init), existsSync(home)]).to.deep.equal([false, false]);
  });

  it('keeps its warning while such a sandbox runs under another setting, and removes unused folders', async () => {
    const { id, revision } = await spawned.launched();
    await spawned.driver.stop();
    const { homes } = pathsOf(spawned.dataDir);
    mkdirSync(join(homes, 'of-nobody'));
    writeFileSync(join(homes, 'of-nobody', 'file'), '');
    const facts = new FactLog();
    const driver = spawned.again({ isolation: 'auto', bwrapPath: '/usr/bin/bwrap' });
    await driver.watch(facts.report);
    expect(driver.describe().isolation).to.not.equal('none');
    expect(
      driver
        .describe()
        .warnings.some((warning) => warning.startsWith('some sandboxes are not isolated')),
    ).to.equal(true);
    expect(existsSync(join(homes, 'of-nobody'))).to.equal(false);
    const home = homeOf(id);
    await driver.retire(id, revision);
    await facts.when(id, 'gone');
    expect(existsSync(home)).to.equal(false);
  });
});
