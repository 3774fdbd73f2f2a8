import { expect } from 'chai';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { poolsSuite } from '../contracts/pools-over-rest.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { claim, run } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

describe("a pool's volumes and passwords on one machine", function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-volume-'));
    chmodSync(folder, 0o777); // sandboxes have host uids of their own
    writeFileSync(join(folder, 'told'), 'from outside');
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 0
      --volumes-directories default/data=${folder}`);
    client = daemon.client();
  });

  after(async () => {
    await daemon.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  poolsSuite('the embedded daemon', () => ({
    tenants: [client],
    image: 'host',
    claimName: 'data',
  }));

  const pool = async (name: string, overrides: object): Promise<string> => {
    const answer = await client.post('/sandboxpools', {
      name,
      replicas: 1,
      template: { containers: [{ name: 'main', image: 'host' }] },
      overrides,
    });
    expect(answer.status, answer.text).to.equal(201);
    return await claim(client, name);
  };

  it('keep files after the sandbox, and unchanged on a read-only volume', async () => {
    const writer = await pool('writer', { volumes: [{ claimName: 'data', mountPath: '/data' }] });
    const reader = await pool('reader', {
      volumes: [{ claimName: 'data', mountPath: '/home/sandbox/data', readOnly: true }],
    });

    expect(
      (await run(client, writer, 'cat /data/told; echo from inside > /data/answer')).stdout,
    ).to.equal('from outside');
    expect(readFileSync(join(folder, 'answer'), 'utf8')).to.equal('from inside\n');
    expect(await run(client, reader, 'cat data/answer; echo x > data/answer')).to.deep.include({
      stdout: 'from inside\n',
      exitCode: 2,
    });
    await client.delete(`/sandboxes/${writer}`);
    expect(readFileSync(join(folder, 'answer'), 'utf8')).to.equal('from inside\n');
  });

  it('include just a folder of a volume, which is created if missing', async () => {
    const mounts = (subPath: string) => ({
      volumes: [
        { claimName: 'data', mountPath: '/all', readOnly: true },
        { claimName: 'data', mountPath: '/part', subPath },
      ],
    });
    mkdirSync(join(folder, 'team'), { mode: 0o777 });
    chmodSync(join(folder, 'team'), 0o777);
    writeFileSync(join(folder, 'team/told'), 'to the team');

    const [there, made] = [
      await pool('there', mounts('team')),
      await pool('made', mounts('team/./new/')),
    ];

    expect((await run(client, there, 'cat /part/told; ls /part')).stdout).to.equal(
      'to the teamnew\ntold\n',
    );
    await run(client, made, 'echo mine > /part/file');
    expect(readFileSync(join(folder, 'team/new/file'), 'utf8')).to.equal('mine\n');
  });

  it('prevent a start, with the reason, if a link leads out of the volume', async () => {
    symlinkSync('/etc', join(folder, 'out'));
    const answer = await client.post('/sandboxpools', {
      name: 'led-out',
      replicas: 1,
      template: { containers: [{ name: 'main', image: 'host' }] },
      overrides: { volumes: [{ claimName: 'data', mountPath: '/part', subPath: 'out' }] },
    });
    expect(answer.status, answer.text).to.equal(201);

    await eventually(async () => {
      const { json } = await client.get('/sandboxpools/led-out');
      return JSON.stringify(json).includes('the folder out of the volume: Not a directory');
    }, 'the pool says why nothing starts');
  });

  it("are refused if a volume would cover the sandbox's own folders, or lead elsewhere", async () => {
    const refused = async (volume: object, ...others: readonly object[]): Promise<unknown> =>
      (
        await client.post('/sandboxpools', {
          name: 'no',
          template: { containers: [{ name: 'main', image: 'host' }] },
          overrides: { volumes: [{ claimName: 'data', mountPath: '/data', ...volume }, ...others] },
        })
      ).json.detail?.['field'];
    for (const mountPath of [
      '/',
      '/usr',
      '/etc/x',
      '/proc',
      '/dev/shm',
      '/home',
      '/.sandpool/x',
      '//usr/./lib',
    ])
      expect(await refused({ mountPath }), mountPath).to.equal('overrides.volumes[0].mountPath');
    for (const subPath of ['/a', '..', 'a/../b', 'a\0b', 7, `a/${'ü'.repeat(128)}`])
      expect(await refused({ subPath }), String(subPath)).to.equal('overrides.volumes[0].subPath');
    expect(await refused({}, { claimName: 'data', mountPath: '/data/in' })).to.equal(
      'overrides.volumes[1].mountPath',
    );
    expect(await refused({}, { claimName: 'data', mountPath: '/data' })).to.match(
      /^overrides\.volumes\[[01]\]\.mountPath$/,
    );
  });

  it('are encrypted in the data folder if they are registry passwords', async () => {
    await client.post('/sandboxpools', {
      name: 'sealed',
      replicas: 0,
      template: { containers: [{ name: 'main', image: 'host' }] },
      overrides: {
        imagePullSecret: {
          registries: [{ registry: 'r.example', username: 'u', password: 'correct-horse-battery' }],
        },
      },
    });
    for (const file of ['sandpool.db', 'sandpool.db-wal'])
      expect(
        readFileSync(join(daemon.dataDir, file)).includes('correct-horse-battery'),
        file,
      ).to.equal(false);
    expect(daemon.run.stderr()).to.not.contain('correct-horse-battery');
  });
});
