import { expect } from 'chai';
import { buffer } from 'node:stream/consumers';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { noIdleInstance } from '../../src/model/pools/exhausted-pool.ts';
import { NO_INSTANCES } from '../../src/model/pools/pool.ts';
import type { ClaimPlace } from '../../src/actors/env/claim-places.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import {
  compatibleClient,
  type HttpAnswer,
  type HttpClient,
} from '../support/harness/http-client.ts';
import { callsOf } from '../support/harness/engine-operations.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCompatibleFleet, type CompatibleFleet } from './a-compatible-fleet.ts';
import { SDKS } from './a-sdk.ts';
import { rulesOf } from '../http/an-approving-server.ts';
import type { ApprovalGate } from '../../src/services/approvals/approval-gate.ts';
import { CONTROL_STEPS, controlWorld } from './control-steps.ts';
import { sent } from './services/rpc-client.ts';

const [VERSION, Sandbox] = [...SDKS].at(-1)!;

type Shown = Readonly<Record<string, string>>;

describe("the compatible API over a manager's clusters", () => {
  let fleet: CompatibleFleet;
  let client: HttpClient;

  beforeEach(async () => {
    fleet = await aCompatibleFleet();
    client = compatibleClient(Number(new URL(fleet.manager.url).port), fleet.manager.keys.tenant);
  });
  afterEach(async () => {
    client.close();
    await fleet.stop();
  });

  const create = (templateID: string, headers = {}): Promise<HttpAnswer> =>
    client.post('/v2/sandboxes', { templateID }, { headers });
  const created = async (templateID: string): Promise<Shown> => {
    const { status, json, text } = await create(templateID);
    expect(status, text).to.equal(201);
    return json as unknown as Shown;
  };
  const told = ({ status, text }: HttpAnswer): readonly unknown[] => [
    status,
    (JSON.parse(text) as { readonly message: unknown }).message,
  ];
  const health = async (id = '', token = ''): Promise<number> => {
    const headers = { 'E2b-Sandbox-Id': id, 'X-Access-Token': token };
    return (await fetch(new URL('/health', fleet.manager.url), { headers })).status;
  };

  it("hides keys and tokens from workers, and accepts only the manager's tokens", async () => {
    const { sandboxID = '', envdAccessToken = '' } = await created('w1::default');
    const elsewhere = await created('w2::default');

    expect(await health(sandboxID, envdAccessToken)).to.equal(204);
    for (const { url, headers } of fleet.passed)
      for (const text of [url, ...headers]) {
        expect(text).to.not.include(fleet.manager.keys.tenant);
        expect(text).to.not.match(/sbt_/);
        expect(text).to.not.include(fleet.manager.keys.tenant.split('_')[2]);
      }
    expect(await health(elsewhere['sandboxID'], envdAccessToken)).to.equal(401);
    expect(await health(sandboxID.slice(0, 32), envdAccessToken)).to.equal(401);
    expect(await health(`${sandboxID.slice(0, 32)}hub`, envdAccessToken)).to.equal(401);
    const bare = compatibleClient(
      Number(new URL(fleet.workers['w1']!.url).port),
      fleet.workers['w1']!.keys.tenant,
    );
    expect((await bare.get(`/compatible/api/sandboxes/${sandboxID.slice(0, 32)}`)).status).to.equal(
      404,
    );
    bare.close();
  });

  it('lists sandboxes of all clusters in pages, in both orders, and reports missing clusters', async () => {
    const made: string[] = [];
    for (const pool of ['w1::default', 'default', 'w2::default', 'w1::default', 'w2::default']) {
      for (const { operations } of [fleet.manager, ...Object.values(fleet.workers)])
        operations.clock.advance(1_000);
      made.push((await created(pool))['sandboxID'] ?? '');
    }
    const listed = async (query: string): Promise<readonly string[]> => {
      const ids: string[] = [];
      let next: string | undefined = '';
      for (let pages = 0; next !== undefined && pages < 10; pages += 1) {
        const token: string = next === '' ? '' : `&nextToken=${next}`;
        const answer: HttpAnswer = await client.get(`/v2/sandboxes?limit=2${query}${token}`);
        expect(answer.status, answer.text).to.equal(200);
        ids.push(...(answer.json as unknown as Shown[]).map((each) => each['sandboxID'] ?? ''));
        next = answer.headers['x-next-token'] as string | undefined;
      }
      return ids;
    };

    expect(await listed('&order=asc')).to.deep.equal(made);
    expect(await listed('')).to.deep.equal(made.toReversed());
    expect(await listed('&template=w2::default')).to.deep.equal([made[4], made[2]]);
    expect(await listed('&template=base')).to.deep.equal([made[3], made[0]]);
    fleet.cut('w2');
    await eventually(
      async () => (await listed('')).length === 3,
      'the list is without the cluster that was cut',
    );
    expect((await client.get('/v2/sandboxes')).headers['warning']).to.include('w2');
  });

  it('refuses invalid requests like a single cluster', async () => {
    for (let taken = 0; taken < 4; taken += 1) await created('w1::default');
    const full = await create('w1::default');
    expect(full.status, full.text).to.equal(429);
    expect(full.headers['retry-after']).to.match(/^[0-9]+$/);
    expect(told(await create('w1::none'))[0]).to.equal(404);
    expect(told(await create('w3::default'))).to.deep.equal([404, 'cluster not found']);
    const [status, message] = told(await create('a-b::default'));
    expect(status).to.equal(400);
    expect(message).to.include('at most 25');
    expect((await create('w1::default//image')).status).to.equal(400);
  });

  it('creates one sandbox for a creation repeated with a key', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const first = await create('w1::default', headers);
    const again = await create('w1::default', headers);
    expect([first.status, again.status], again.text).to.deep.equal([201, 201]);
    expect(again.json).to.deep.equal(first.json);
  });

  it('uses one name of a template, whatever else the body names', async () => {
    fleet.manager.operations.claimPlaces = (_caller, name) =>
      name === 'dev' ? [{ clusterId: 'w2', poolName: 'default', took: () => undefined }] : [];
    for (const [templateID, made] of [
      ['w1::default', 'w1::default'],
      ['dev', 'w2::default'],
    ]) {
      const { status, json, text } = await client.post('/v2/sandboxes', {
        ...{ templateID, template: `${String(made).slice(0, 2)}::none` },
      });
      expect(status, text).to.equal(201);
      expect(json).to.have.property('templateID', made);
    }
  });

  it('claims by the name of an env from the member with stock', async () => {
    const places: ClaimPlace[] = ['a-b', 'w2'].map((clusterId) => ({
      ...{ clusterId, poolName: 'default' },
      took: () => undefined,
    }));
    fleet.manager.operations.claimPlaces = (_caller, name) => (name === 'dev' ? places : []);

    expect(await created('dev')).to.have.property('templateID', 'w2::default');
  });

  it('serves signed links to files of a named sandbox, and hides the signature from workers', async () => {
    const { url, keys } = fleet.manager;
    const own = { apiKey: toCompatibleForm(keys.tenant), apiUrl: url, sandboxUrl: url };
    const sandbox = await Sandbox.create('w1::default', own);
    const id = sandbox.sandboxId;
    const write = await sandbox.uploadUrl('/tmp/ä b');
    const read = new URL(
      await sandbox.downloadUrl('/tmp/ä b', { useSignatureExpiration: 10 ** 9 }),
    );
    const body = new FormData();
    body.append('file', new Blob(['hello']), 'a');
    const upload = { method: 'POST', body, headers: { 'E2b-Sandbox-Id': id } };
    const asked = async (host: string, query = read.search): Promise<readonly unknown[]> => {
      const headers = { host: `${host}.sandboxes.test`, Referer: String(read) };
      const answer = await sent(Number(read.port), `/files${query}`, { method: 'GET', headers });
      return [answer.statusCode, String(await buffer(answer))];
    };

    expect((await fetch(write, upload)).status).to.equal(200);
    expect(await asked(`49983-${id}`)).to.deep.equal([200, 'hello']);
    for (const { url: passed, headers } of fleet.passed)
      expect([passed, ...headers].join('\n')).to.not.match(/signature(=|_exp)|v1_|referer/i);
    for (const [host, query] of [
      [`49983-${id.slice(0, 32)}w2`],
      [`49983-${id.slice(0, 32)}`],
      [`49983-${id}`, new URL(write).search],
      [`49983-${id}`, read.search.replace(/signature_expiration=\d/, '$&1')],
      ['files'],
    ] as const)
      expect((await asked(host, query))[0], host).to.equal(401);
  });

  it('reports a silent cluster, not a missing sandbox', async () => {
    const { sandboxID = '', envdAccessToken = '' } = await created('w1::default');
    fleet.cut('w1');
    await eventually(
      async () => (await health(sandboxID, envdAccessToken)) === 503,
      'the link is cut',
    );
    expect((await client.get(`/sandboxes/${sandboxID}`)).status).to.equal(503);
  });
});

for (const [waitMs, workerWaitMs] of [
  [9_000, 0],
  [0, 9_000],
] as const)
  it(`makes a claim wait ${waitMs} ms in total, the manager's setting, if workers have ${workerWaitMs}`, async () => {
    const clock = new TestClock();
    const given = { terms: { waitMs } };
    const fleet = await aCompatibleFleet(['w1', 'w2'], given, {
      passingClock: clock,
      workerWaitMs,
    });
    const { url, keys, operations } = fleet.manager;
    const client = compatibleClient(Number(new URL(url).port), keys.tenant);
    const waited: string[] = [];
    const places = ['w1', 'w2', 'hub'];
    for (const [clusterId, at] of Object.entries({ ...fleet.workers, hub: { operations } }))
      Object.assign(at.operations, {
        claimSandbox: async (_caller: unknown, asked: { readonly waitMs?: number }) => {
          waited.push(`${clusterId} ${asked.waitMs}`);
          clock.advance(asked.waitMs ?? 0);
          throw noIdleInstance({ name: 'default' }, NO_INSTANCES);
        },
      });
    operations.claimPlaces = (_caller, name) =>
      (name === 'dev' ? places : []).map((clusterId) => ({
        ...{ clusterId, poolName: 'default' },
        took: () => undefined,
      }));
    try {
      const from = clock.now();
      for (const templateID of ['dev', 'w2::default']) {
        const { status } = await client.post('/v2/sandboxes', { templateID });
        expect(status).to.equal(429);
      }
      places.unshift(places.pop() ?? '');
      await client.post('/v2/sandboxes', { templateID: 'dev' });

      expect(waited).to.deep.equal([
        ...[`w1 ${waitMs}`, 'w2 0'],
        `w2 ${waitMs}`,
        ...[`hub ${waitMs}`, 'w1 0'],
      ]);
      expect(clock.now() - from).to.equal(3 * waitMs);
    } finally {
      client.close();
      await fleet.stop();
    }
  });

it("applies the manager's rules to sandboxes of other clusters", async () => {
  const rules = rulesOf('deny operation=startProcess path=/sandboxes/**');
  const gate = { rulesFor: (operation: string) => (operation === 'startProcess' ? rules : []) };
  const fleet = await aCompatibleFleet(['w1'], { gate: gate as unknown as ApprovalGate });
  const { url, keys } = fleet.manager;
  const client = compatibleClient(Number(new URL(url).port), keys.tenant);
  try {
    const { json } = await client.post('/v2/sandboxes', { templateID: 'base' });
    const { sandboxID = '', envdAccessToken = '' } = json as unknown as Shown;
    const ask = async (method: string): Promise<number> => {
      const headers = { 'E2b-Sandbox-Id': sandboxID, 'X-Access-Token': envdAccessToken };
      const path = `/process.Process/${method}`;
      return (await fetch(new URL(path, url), { method: 'POST', headers })).status;
    };
    const before = fleet.passed.length;
    expect(await ask('Start')).to.equal(403);
    expect(fleet.passed.length).to.equal(before);
    expect(await ask('List')).to.not.equal(403);
    expect(await ask('constructor')).to.equal(404);
  } finally {
    client.close();
    await fleet.stop();
  }
});

describe('the control API of a manager with sandboxes of a worker', () => {
  let fleet: CompatibleFleet;
  before(async () => {
    fleet = await aCompatibleFleet(['w1']);
  });
  after(() => fleet.stop());

  for (const [title, step] of Object.entries(CONTROL_STEPS))
    it(title, () => {
      const { operations } = fleet.workers['w1']!;
      const claims = callsOf(operations, 'claimSandbox');
      return step({
        ...controlWorld(fleet.manager, { version: VERSION, Sandbox }),
        clusterId: 'w1',
        now: () => operations.clock.now(),
        claimedEnv: () => claims.at(-1)?.[1].env,
      });
    });
});
