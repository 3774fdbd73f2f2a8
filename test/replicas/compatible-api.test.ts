import { expect } from 'chai';
import { Sandbox } from 'e2b-2-51-0';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { onSharedCompatibleReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { rejection } from '../support/harness/rejection.ts';

const IMAGE = 'registry.invalid/sandbox:1';
const OTHER = 'registry.invalid/team/tool:2';

describe("the control API of E2B's SDKs on replicas", function () {
  const replicas = onSharedCompatibleReplicas(onTheControlPlane());
  let key: string;
  let client: HttpClient;
  /** By the replica of that index. */
  const by = (index: number, apiKey = toCompatibleForm(key)) => {
    const url = readPidFile(replicas().replica(index).dataDir)?.compatibleAddress ?? '';
    return { apiKey, apiUrl: url, sandboxUrl: url };
  };
  const idleAt = async (index: number): Promise<unknown> => {
    const asking = new HttpClient(replicas().replica(index).port, key);
    const { json } = await asking.get('/sandboxpools/default');
    asking.close();
    return (json.template?.['status'] as Readonly<Record<string, unknown>> | undefined)?.[
      'idleReplicas'
    ];
  };

  before(async () => {
    key = await replicas().tenant('blue', 'ada');
    client = new HttpClient(replicas().replica(0).port, key);
    const pool = { name: 'default', replicas: 5, overrides: { image: IMAGE } };
    await eventually(
      async () => (await client.post('/sandboxpools', pool)).status === 201,
      'the pool is made',
    );
    for (const index of [0, 1])
      await eventually(async () => (await idleAt(index)) === 5, 'it is filled');
  });
  after(() => client.close());

  it('shows, changes and ends a sandbox on other replicas than its own', async () => {
    const began = performance.now();
    const made = await Sandbox.create('base', {
      ...by(0),
      timeoutMs: 600_000,
      metadata: { run: 'a b' },
      envs: { TOKEN: 'canary' },
    });
    const there = await Sandbox.connect(made.sandboxId, { ...by(1), timeoutMs: 3_600_000 });
    const tookMs = performance.now() - began;
    const { startedAt, endAt, metadata } = await there.getInfo();

    expect(metadata).to.deep.equal({ run: 'a b' });
    // Each replica reads the API server's clock from answers that tell whole seconds.
    expect(endAt.getTime() - startedAt.getTime()).to.be.within(3_598_000, 3_602_000 + tookMs);
    expect(await there.isRunning()).to.equal(true);
    expect(await Sandbox.kill(made.sandboxId, by(1))).to.equal(true);
    await eventually(async () => !(await made.isRunning()), 'the other one knows');
    expect(await Sandbox.kill(made.sandboxId, by(0))).to.equal(false);
  });

  it('lists by metadata, page by page, from either end', async () => {
    const made: string[] = [];
    for (const index of [0, 1, 0]) {
      const { sandboxId } = await Sandbox.create('base', {
        ...by(index),
        metadata: { job: 'list' },
      });
      made.push(sandboxId);
    }
    const listed = async (order: 'asc' | 'desc'): Promise<readonly string[]> => {
      const found: string[] = [];
      const query = { metadata: { job: 'list' } };
      const pages = Sandbox.list({ ...by(1), limit: 2, query, order } as never);
      while (pages.hasNext)
        found.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId));
      return found;
    };

    await eventually(async () => (await listed('desc')).length === 3, 'all are seen');
    expect(await listed('asc')).to.have.members(made);
    expect((await listed('desc')).toReversed()).to.deep.equal(await listed('asc'));
    for (const id of made) await Sandbox.kill(id, by(0));
  });

  for (const index of [0, 1])
    it(`starts a sandbox with its own image on replica ${index}, whoever leads`, async () => {
      const sandbox = await Sandbox.create(`default//${OTHER}`, by(index));
      const id = sandbox.sandboxId.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
      const images = async (): Promise<readonly string[]> => {
        const { items = [] } = (await client.get('/sandboxes?phase=Running&limit=100')).json;
        const found = items.find(({ sandboxId }) => sandboxId === id);
        return Object.values((found?.['containerImages'] ?? {}) as Record<string, string>);
      };

      await eventually(async () => (await images()).length > 0, 'it is listed');
      expect(await images()).to.deep.equal([OTHER]);
      expect(await sandbox.kill()).to.not.equal(false);
    });

  it('ends a sandbox on time', async () => {
    const { sandboxId } = await Sandbox.create('base', { ...by(0), timeoutMs: 2_000 });

    await eventually(
      () =>
        Sandbox.getInfo(sandboxId, by(1)).then(
          () => false,
          (error: unknown) => /not ?found/i.test(String(error)),
        ),
      'it has ended',
    );
  });

  it('refuses with 501 what a Pod cannot do, and requires the token of the sandbox', async () => {
    const lifecycle = { onTimeout: 'pause' } as const;
    const paused = await rejection(Sandbox.create('base', { ...by(0), lifecycle }));
    expect(paused.message).to.match(/^501: /);

    const { sandboxId } = await Sandbox.create('base', by(0));
    const stranger = by(1, toCompatibleForm(await replicas().tenant('red', 'eve')));
    expect(await Sandbox.kill(sandboxId, stranger)).to.equal(false);
    const without = await fetch(`${by(1).sandboxUrl}/health`, {
      headers: { 'E2b-Sandbox-Id': sandboxId },
    });
    expect(without.status).to.equal(401);
    expect(await Sandbox.kill(sandboxId, by(1))).to.equal(true);
  });
});
