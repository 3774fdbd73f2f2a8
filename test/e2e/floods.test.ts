import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../src/embedded/spawner/sandbox/process-identity.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, clear, run, stocked } from '../support/harness/on-a-daemon.ts';
import {
  cgroupOf,
  initIdentityOf,
  processesBeside,
} from '../support/harness/seen-from-the-host.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const MIB = 2 ** 20;
/** Of one sandbox: as the configuration's default has it. */
const PIDS_MAX = 256;

interface Flood {
  readonly what: string;
  /** Goes on until it is killed. */
  readonly command: string;
  /** Whether it is in full spate: without, the test shows nothing. */
  readonly isInSpate: (
    client: HttpClient,
    id: string,
    pids: readonly number[],
  ) => Promise<boolean> | boolean;
}

const fills = (path: string): Flood => ({
  what: `writes without end to ${path}`,
  command: `while :; do cat /dev/zero > ${path}/flood-$$; sleep 0.05; done`,
  isInSpate: async (client, id) => / 100%/.test((await run(client, id, `df -P ${path}`)).stdout),
});

const FLOODS: readonly Flood[] = [
  // bash goes on where there is no process left to be had; sh ends, and the flood with it.
  {
    what: 'forks without end',
    command: "exec bash -c 'bomb() { bomb | bomb & }; while :; do bomb; done' 2>/dev/null",
    isInSpate: (_client, _id, pids) => pids.length > PIDS_MAX * 0.6,
  },
  {
    what: 'takes memory without end',
    command: 'while :; do tail /dev/zero || echo killed >> /tmp/killed; done',
    isInSpate: async (client, id) =>
      (await run(client, id, 'cat /tmp/killed')).stdout.startsWith('killed'),
  },
  fills('/tmp'),
  fills('/home/sandbox'),
  fills('/dev/shm'),
  {
    what: 'fills a folder with empty files',
    command: 'mkdir /tmp/many; cd /tmp/many; i=0; while i=$((i+1)); do : > $i-$$; done',
    isInSpate: async (client, id) =>
      Number((await run(client, id, 'ls -U /tmp/many | wc -l')).stdout) > 10_000,
  },
  {
    what: 'leaves folders behind that are deep and closed',
    command:
      'cd /tmp; while :; do mkdir d && touch d/f && cd d && chmod 0 f ../d/. 2>/dev/null; mkdir -p /tmp/side-$((n=n+1)); chmod 0 /tmp/side-$n; done',
    isInSpate: async (client, id) =>
      Number((await run(client, id, 'ls -d /tmp/side-* | wc -l')).stdout) > 300,
  },
];

describe('a sandbox that floods the machine', function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let neighbour: string;

  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '3']);
    client = daemon.client();
    await stocked(client, 3);
  });

  beforeEach(async () => {
    neighbour = await claim(client);
  });

  afterEach(() => clear(client));

  after(() => daemon.dispose());

  /**
   * Bytes in use where a sandbox could leave something on the host; what others write elsewhere on
   * its disks is not counted.
   */
  const used = (): number =>
    [daemon.dataDir, '/dev/shm', '/run']
      .filter((path) => existsSync(path))
      .reduce(
        (sum, path) =>
          sum +
          1_024 *
            Number(spawnSync('du', ['-skx', path], { encoding: 'utf8' }).stdout.split('\t')[0]),
        0,
      );

  for (const { what, command, isInSpate } of FLOODS) {
    it(`that ${what} harms neither its neighbour nor the daemon, and can be deleted completely`, async () => {
      const id = await claim(client);
      const before = used();
      const identity = initIdentityOf(daemon.dataDir, id);
      const { pid: init } = identity;
      const cgroups = cgroupOf(init)
        .split('\n')
        .filter((line) => line.includes(id))
        .map((line) => line.split(':'));
      const flood = client
        .post(`/sandboxes/${id}/exec`, { command, timeoutSeconds: 240 })
        .catch((error: unknown) => error);
      await within(
        'it floods',
        async () => (await isInSpate(client, id, processesBeside(init))) || undefined,
      );

      for (let round = 0; round < 20; round++) {
        const timeoutSeconds = NEVER_COMES_MS / 1_000;
        const ran = await run(client, neighbour, `echo ${round}`, { timeoutSeconds });
        expect(ran).to.include({ stdout: `${round}\n`, exitCode: 0 });
        expect((await client.get('/readyz')).status).to.equal(200);
      }
      expect(processesBeside(init).length).to.be.at.most(PIDS_MAX);

      expect((await client.delete(`/sandboxes/${id}`)).status).to.equal(200);
      await within(
        'it is no more',
        async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
      );
      await flood;
      // With its init all of it has ended; the number may be another's by now.
      expect(isAlive(identity), 'its init').to.equal(false);
      expect(
        readdirSync(join(daemon.dataDir, 'run')).filter((name) => name.includes(id)),
      ).to.deep.equal([]);
      for (const [, controllers, path] of cgroups)
        expect(
          existsSync(join('/sys/fs/cgroup', controllers ?? '', path ?? '')),
          `cgroup ${path}`,
        ).to.equal(false);
      expect(used() - before, 'bytes left on the host').to.be.below(256 * MIB);
      expect((await run(client, neighbour, 'echo lives')).stdout).to.equal('lives\n');
      await stocked(client, 2);
    });
  }
});
