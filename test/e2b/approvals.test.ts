import { expect } from 'chai';
import { heldSubject } from '../../src/http/corridor/held-subject.ts';
import type { ApprovalRecord } from '../../src/model/approvals/approval.ts';
import { approvalParts } from '../../src/services/approvals/approval-parts.ts';
import { aServer } from '../http/a-server.ts';
import { aSession, rulesOf, TERMS } from '../http/an-approving-server.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aCompatibleApi } from './a-compatible-api.ts';

interface Given {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The compatible API, and the REST API over the same operations and approvals. */
const anApprovingApi = async (...rules: readonly string[]) => {
  const operations = anEngine();
  const records = new MemoryApprovals();
  const parts = approvalParts({
    approvals: records,
    clock: new TestClock(),
    log: quietLog,
    pepper: Buffer.alloc(32, 7),
    rules: rulesOf(...rules),
    terms: TERMS,
    severalDecide: () => true,
  });
  await parts.mirror.start();
  Object.assign(operations, parts.operations);
  const { gate } = parts;
  const gating = { gate, subjectOf: heldSubject(operations) };
  const api = await aCompatibleApi({ operations, gating, gate });
  const rest = await aServer({ operations, gating });
  const send =
    (base: string, header: string) =>
    async (method: string, path: string, body?: object, more: object = {}): Promise<Given> => {
      const answer = await fetch(base + path, {
        method,
        headers: { [header]: api.keys.tenant, 'Content-Type': 'application/json', ...more },
        body: body ? JSON.stringify(body) : undefined,
      });
      const text = await answer.text();
      return { status: answer.status, body: text === '' ? {} : (JSON.parse(text) as {}) };
    };
  const last = (): ApprovalRecord => {
    const record = [...records.records.values()].at(-1);
    if (!record) throw new Error('nobody was asked');
    return record;
  };
  return {
    operations,
    records,
    keys: api.keys,
    compatible: send(api.url, 'X-API-KEY'),
    rest: send(`http://127.0.0.1:${rest.port}`, 'SERVICE-API-KEY'),
    last,
    approve: async (scope: 'once' | 'session' = 'once', { id } = last()) =>
      await parts.operations.decideApproval(aSession(), id, { decision: 'approve', scope }),
    stop: async () => {
      await api.stop();
      await rest.stop();
    },
  };
};

type ApprovingApi = Awaited<ReturnType<typeof anApprovingApi>>;

describe('a creation that waits for an approval at the compatible API', () => {
  let api: ApprovingApi;
  const start = async (...rules: readonly string[]): Promise<ApprovingApi> =>
    (api = await anApprovingApi(...rules));
  const claimed = async (): Promise<string> => {
    const caller = api.operations.authenticate(api.keys.tenant);
    const { id } = await api.operations.claimSandbox(caller, { poolName: 'default' });
    return id;
  };
  afterEach(() => api.stop());

  it('happens only after the approval, once, when the client repeats it', async () => {
    const { operations, records, keys, compatible, approve } = await start(
      'require operation=claimSandbox key=gated',
    );
    const caller = operations.authenticate(keys.tenant);
    const { apiKey } = await operations.createApiKey(caller, {
      ...{ shortName: 'agent', description: '', gated: true },
    });
    const create = async (key: string) =>
      await compatible(
        'POST',
        '/sandboxes',
        { templateID: 'base', timeout: 60 },
        { 'X-API-KEY': key },
      );

    const held = await create(apiKey);
    const [id = ''] = records.records.keys();
    expect(held).to.deep.equal({
      status: 403,
      body: {
        code: 403,
        message: `a person must approve this request first (approval ${id})`,
      },
    });
    expect((await create(apiKey)).body).to.deep.equal(held.body);
    expect(operations.sandboxes.size).to.equal(0);

    await approve();
    const made = await create(apiKey);
    const again = await create(apiKey);

    expect([made.status, again]).to.deep.equal([201, made]);
    expect(operations.sandboxes.size).to.equal(1);
    expect(records.records.size).to.equal(1);
    // A key that is not gated waits for nobody.
    expect((await create(keys.tenant)).status).to.equal(201);
  });

  for (const scope of ['once', 'session'] as const)
    it(`cannot use a pause's approval for a connect, ${scope}`, async () => {
      const { compatible, approve, last } = await start('require operation=setSandboxState');
      const id = await claimed();
      const far = { timeout: 315_360_000 };
      const ask = (verb: string) =>
        compatible('POST', `/sandboxes/${id}/${verb}`, far, { 'X-Session-Id': 'run-7' });
      expect((await ask('pause')).status).to.equal(403);
      expect(last()).to.deep.include({
        route: 'compatible POST /sandboxes/{sandboxId}/pause',
        ignored: ['timeout'],
      });
      await approve(scope);

      expect((await ask('connect')).status).to.equal(403);
      expect((await ask('pause')).status).to.equal(204);
    });

  it('cannot use an approval of the other API, or of another lifetime', async () => {
    const { operations, compatible, rest, approve } = await start('require operation=claimSandbox');
    const body = { poolName: 'default', templateID: 'base' };
    await rest('POST', '/sandboxes', body);
    await approve();
    expect((await compatible('POST', '/sandboxes', body)).status).to.equal(403);
    await approve();

    expect((await compatible('POST', '/v2/sandboxes', body)).status).to.equal(403);
    expect(operations.sandboxes.size).to.equal(0);
    expect((await rest('POST', '/sandboxes', body)).status).to.equal(201);
    expect((await compatible('POST', '/sandboxes', body)).status).to.equal(201);
  });

  it("cannot change a sandbox's end by a connect if a rule denies that", async () => {
    const { compatible, operations } = await start('deny operation=setIdleTimeout');
    const id = await claimed();

    const { status } = await compatible('POST', `/sandboxes/${id}/connect`, { timeout: 9_999 });

    expect(status).to.equal(403);
    expect(operations.sandboxes.get(id)?.endsAt).to.equal(undefined);
  });

  it('applies every rule to a connect that matches one of its steps, and never approves a session', async () => {
    const { compatible, approve, last } = await start(
      'require operation=setIdleTimeout',
      'allow operation=setSandboxState',
    );
    const id = await claimed();
    const connect = () => compatible('POST', `/sandboxes/${id}/connect`, { timeout: 60 });

    expect((await connect()).status).to.equal(403);
    expect(last()).to.include({ operation: 'setSandboxState', onceOnly: true });
    await approve();
    expect((await connect()).status).to.equal(200);
  });

  it('reports that no approval helps if a rule denies another step of a connect', async () => {
    const { compatible } = await start(
      'require operation=setSandboxState',
      'deny operation=setIdleTimeout',
    );
    const id = await claimed();

    const { status, body } = await compatible('POST', `/sandboxes/${id}/connect`, { timeout: 60 });

    expect([status, body['message']]).to.deep.equal([
      403,
      'the policy of this deployment denies such requests; no approval can allow them',
    ]);
  });

  it('is recognized by the body of the operation, at any path and spelling', async () => {
    const { rest, compatible } = await start(
      'deny operation=claimSandbox body.poolName=default',
      'deny operation=setIdleTimeout|setSandboxState body.idleTimeout>1h',
    );
    const id = await claimed();
    const pool = { poolName: 'local::default' };
    for (const answer of [
      await rest('POST', '/sandboxes', pool),
      await compatible('POST', '/sandboxes', { templateID: 'base' }),
      await rest('PUT', `/sandboxes/${id}/idle-timeout`, { idleTimeoutSeconds: 7_200 }),
      await compatible('POST', `/sandboxes/${id}/timeout`, { timeout: 7_200 }),
      await compatible('POST', `/sandboxes/${id}/connect`, { timeout: 7_200 }),
    ])
      expect(answer.status).to.equal(403);
    expect((await compatible('POST', `/sandboxes/${id}/connect`, {})).status).to.equal(200);
    const short = { idleTimeout: '30m' };
    expect((await rest('PUT', `/sandboxes/${id}/idle-timeout`, short)).status).to.equal(200);
  });

  it('is refused with files if a rule denies writing files', async () => {
    const { rest } = await start('allow operation=claimSandbox', 'deny operation=writeFile');
    const files = [{ path: '/tmp/a', content: 'a' }];

    const denied = await rest('POST', '/sandboxes', { poolName: 'default', files });

    expect([denied.status, denied.body['errorCode']]).to.deep.equal([403, 'APPROVAL_DENIED']);
    expect((await rest('POST', '/sandboxes', { poolName: 'default' })).status).to.equal(201);
  });

  it('returns no tokens if the rules let the key neither run nor read anything in the sandbox', async () => {
    const tokens = ['envdAccessToken', 'trafficAccessToken'];
    const rules = ['allow operation=getSandbox', 'deny path=/sandboxes/**'];
    const { compatible } = await start(...rules);
    const { status, body } = await compatible('GET', `/sandboxes/${await claimed()}`);
    expect(status).to.equal(200);
    expect(body).to.not.have.any.keys(tokens);
    await api.stop();

    const reading = await start('allow path=/sandboxes/*/processes/*/output', ...rules);
    expect((await reading.compatible('GET', `/sandboxes/${await claimed()}`)).body).to.include.keys(
      tokens,
    );
  });
});
