import { expect } from 'chai';
import type { AuditEntry, CountedEntry } from '../../src/contracts/audit.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { instanceIdOf } from '../../src/http/e2b/sandbox-id.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { compatibleClient, type HttpClient } from '../support/harness/http-client.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

describe('the audit of the compatible API', () => {
  let api: CompatibleApi;
  let noted: AuditEntry[];
  let counted: CountedEntry[];
  const clients: HttpClient[] = [];
  beforeEach(async () => {
    [noted, counted] = [[], []];
    const audit = {
      note: (entry: AuditEntry) => void noted.push(entry),
      count: (entry: CountedEntry) => void counted.push(entry),
    };
    api = await aCompatibleApi({
      audit,
      watchers: { log: quietLog, metrics: silentMetrics, audit },
    });
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await api.stop();
  });

  const by = (key?: string): HttpClient => {
    const client = compatibleClient(Number(new URL(api.url).port), key);
    clients.push(client);
    return client;
  };
  const created = async (ask = {}): Promise<string> => {
    const { text } = await by(api.keys.tenant).post('/v2/sandboxes', { templateID: 'base' }, ask);
    return (JSON.parse(text) as { readonly sandboxID: string }).sandboxID;
  };

  it('includes every write, with caller, operation and outcome, and no token', async () => {
    const id = await created({ headers: { 'X-Request-Id': 'my-request' } });
    const tenant = by(api.keys.tenant);
    for (const [path, body] of [
      ['timeout', { timeout: 60 }],
      ['connect', {}],
      ['pause', {}],
    ] as const)
      await tenant.post(`/sandboxes/${id}/${path}`, body);
    await tenant.delete(`/sandboxes/${id}`);

    const sandboxId = instanceIdOf(id);
    expect(noted.map(({ operation, status }) => [operation, status])).to.deep.equal([
      ['claimSandbox', 201],
      ['setIdleTimeout', 204],
      ['setSandboxState', 200],
      ['setSandboxState', 204],
      ['deleteSandbox', 204],
    ]);
    const [claim, ...others] = noted;
    expect(claim?.requestId).to.equal('my-request');
    expect(claim?.target).to.deep.equal({ sandboxId, poolName: 'default' });
    expect(claim?.caller).to.include({ team: 'blue', user: 'ada', role: 'user' });
    for (const { params } of others) expect(params).to.deep.equal({ sandboxId });
    expect(JSON.stringify(noted)).not.to.contain('sbt_');
  });

  it('includes refusals by key, form and operation', async () => {
    await by().post('/v2/sandboxes', { templateID: 'base' });
    await by('e2b_00').post('/sandboxes', { templateID: 'base' });
    await by(api.keys.tenant).post('/v2/sandboxes', { templateID: 7 });
    await by(api.keys.tenant).post('/v2/sandboxes', { templateID: 'nowhere' });
    await by(api.keys.stranger).delete(`/sandboxes/${await created()}`);

    expect(
      noted
        .filter(({ status }) => status !== 201)
        .map(({ operation, status, errorCode, caller }) => [
          ...[operation, status, errorCode, caller?.user],
        ]),
    ).to.deep.equal([
      ['claimSandbox', 401, 'API_KEY_REQUIRED', undefined],
      ['claimSandbox', 401, 'INVALID_API_KEY', undefined],
      ['claimSandbox', 400, 'INVALID_ARGUMENT', 'ada'],
      ['claimSandbox', 404, 'POOL_NOT_FOUND', 'ada'],
      ['deleteSandbox', 404, 'SANDBOX_NOT_FOUND', 'eve'],
    ]);
  });

  it('omits reads of tenants, and requests to no operation', async () => {
    const id = await created();
    noted.length = 0;
    for (const path of ['/v2/sandboxes', `/sandboxes/${id}`, '/nowhere', '/snapshots'])
      await by(api.keys.tenant).get(path);

    expect([noted, counted]).to.deep.equal([[], []]);
  });

  it('shows that an answer was repeated', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const [first, again] = [await created({ headers }), await created({ headers })];

    expect(again).to.equal(first);
    expect(noted[0]).to.not.have.property('replayed');
    expect(noted[1]).to.deep.include({ replayed: true, target: noted[0]?.target });
  });
});
