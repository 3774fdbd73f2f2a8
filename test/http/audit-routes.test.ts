import { expect } from 'chai';
import { chainLine, CHAIN_START } from '../../src/services/audit/audit-chain.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('GET /admin/audit', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
    let end = CHAIN_START;
    for (const fields of [
      { kind: 'begin', version: '1', pid: 7, boot: 'b' },
      {
        kind: 'write',
        requestId: 'r1',
        namespace: 'blue',
        team: 'blue',
        user: 'ada',
        role: 'user',
        keyId: 'k1',
        operation: 'claimSandbox',
        target: { poolName: 'p' },
        status: 201,
      },
      {
        kind: 'write',
        requestId: 'r2',
        namespace: 'blue',
        team: 'blue',
        user: 'bob',
        role: 'user',
        keyId: 'k2',
        operation: 'deleteSandbox',
        params: { sandboxId: 'ada' },
        status: 404,
        errorCode: 'SANDBOX_NOT_FOUND',
      },
      {
        kind: 'write',
        requestId: 'r3',
        operation: 'claimSandbox',
        status: 503,
        errorCode: 'UNAVAILABLE',
      },
    ]) {
      const next = chainLine(end, { time: '2026-01-01T00:00:00.000Z', replica: 'r', ...fields });
      end = next.end;
      server.operations.recentAudit.add([next.line]);
    }
  });
  afterEach(() => server.stop());

  interface Page {
    readonly items: readonly { readonly seq: number }[];
    readonly nextCursor?: string;
  }
  const page = async (query: string): Promise<Page> => {
    const answer = await server.admin.get(`/admin/audit?${query}`);
    expect(answer.status, answer.text).to.equal(200);
    return JSON.parse(answer.text) as Page;
  };
  const numbers = async (query: string): Promise<readonly number[]> =>
    (await page(query)).items.map(({ seq }) => seq);

  it('returns lines as written, newest first', async () => {
    const { items } = await page('');

    expect(items.map(({ seq }) => seq)).to.deep.equal([4, 3, 2, 1]);
    expect(items[2]).to.deep.include({
      seq: 2,
      time: '2026-01-01T00:00:00.000Z',
      replica: 'r',
      kind: 'write',
      requestId: 'r1',
      namespace: 'blue',
      team: 'blue',
      user: 'ada',
      role: 'user',
      keyId: 'k1',
      operation: 'claimSandbox',
      target: { poolName: 'p' },
      status: 201,
    });
    expect(items[3]).to.include({
      kind: 'begin',
      version: '1',
      pid: 7,
      boot: 'b',
      prev: '0'.repeat(64),
    });
  });

  it('filters by caller, operation and outcome', async () => {
    expect(await numbers('user=ada')).to.deep.equal([2]);
    expect(await numbers('operation=claimSandbox')).to.deep.equal([4, 2]);
    expect(await numbers('operation=claimSandbox&outcome=done')).to.deep.equal([2]);
    expect(await numbers('outcome=refused')).to.deep.equal([3]);
    expect(await numbers('outcome=failed')).to.deep.equal([4]);
    expect(await numbers('keyId=k2&team=blue&namespace=blue')).to.deep.equal([3]);
    expect(await numbers('user=nobody')).to.deep.equal([]);
  });

  it('resumes at a cursor', async () => {
    const first = await page('limit=3');
    expect(first.items.map(({ seq }) => seq)).to.deep.equal([4, 3, 2]);

    const rest = await page(`limit=3&cursor=${first.nextCursor}`);
    expect(rest.items.map(({ seq }) => seq)).to.deep.equal([1]);
    expect(rest).to.not.have.property('nextCursor');
  });

  it('needs an admin, and names an invalid parameter', async () => {
    expect((await server.tenant.get('/admin/audit')).json.errorCode).to.equal('ADMIN_REQUIRED');
    for (const wrong of [
      'limit=0',
      'limit=1001',
      'cursor=x',
      'cursor=18446744073709551616',
      'cursor=1-18446744073709551616',
      'outcome=good',
    ]) {
      const { status, json } = await server.admin.get(`/admin/audit?${wrong}`);
      expect([status, json.errorCode], wrong).to.deep.equal([400, 'INVALID_ARGUMENT']);
    }
  });

  it('omits invalid lines', async () => {
    server.operations.recentAudit.add(['nonsense']);

    expect(await numbers('')).to.deep.equal([4, 3, 2, 1]);
  });
});
