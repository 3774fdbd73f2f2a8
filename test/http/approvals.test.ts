import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import {
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
  madeAnew,
} from './an-approving-server.ts';

const A_POOL = { name: 'web', templateName: 'default', replicas: 2 };

describe('requests that need an approval', () => {
  let it_: ApprovingServer;
  const start = async (...rules: readonly string[]): Promise<ApprovingServer> =>
    (it_ = await anApprovingServer(rules));
  afterEach(() => it_.stop());

  it('pass exactly once when repeated after the approval', async () => {
    const { server, operations, approve } = await start('require operation=createPool');
    const ask = () => server.tenant.post('/sandboxpools', A_POOL);

    const id = approvalIdOf(await ask());
    expect(operations.pools.size).to.equal(0);
    expect((await approve(id)).json.status).to.equal('approved');
    expect((await ask()).status).to.equal(201);
    expect(operations.pools.size).to.equal(1);
    const shown = await server.tenant.get(`/approvals/${id}`);
    expect(shown.json.status).to.equal('consumed');
  });

  it('get the recent answer again, or 409, without another approval', async () => {
    const { server, clock, approve, records } = await start('require method=POST|DELETE');
    const make = () => server.tenant.post('/sandboxpools', A_POOL);
    const run = () => server.tenant.post('/sandboxpools/web/sync-template');
    await approve(approvalIdOf(await make()));
    const first = await make();
    await approve(approvalIdOf(await run()));
    await run();

    const [again, notAgain] = [await make(), await run()];
    expect([again.status, again.text]).to.deep.equal([first.status, first.text]);
    expect(again.headers['idempotency-replayed']).to.equal('true');
    expect([notAgain.status, notAgain.json.errorCode]).to.deep.equal([409, 'CONFLICT']);
    expect(records.records.size).to.equal(2);
    clock.advance(10_000);
    approvalIdOf(await run());
  });

  it('get the claimed sandbox again, as long as the answer may have been lost', async () => {
    const { server, approve, operations } = await start('require operation=claimSandbox');
    await server.tenant.post('/sandboxpools', A_POOL);
    const ask = () => server.tenant.post('/sandboxes', { poolName: 'web' });
    await approve(approvalIdOf(await ask()));

    const first = await ask();
    const again = await ask();

    expect([again.status, again.text]).to.deep.equal([201, first.text]);
    expect(again.headers['idempotency-replayed']).to.equal('true');
    expect(operations.sandboxes.size).to.equal(1);
  });

  it('stay open until the answer is stored, so that a repetition finds it', async () => {
    const { server, approve, operations, records } = await start('require operation=createPool');
    const ask = () => server.tenant.post('/sandboxpools', A_POOL);
    const id = approvalIdOf(await ask());
    await approve(id);
    let keep: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      keep = resolve;
    });
    const { keepAnswer } = operations.coordination;
    operations.coordination.keepAnswer = async (...call) => {
      await held;
      return await keepAnswer(...call);
    };

    expect((await ask()).status).to.equal(201);
    expect(records.records.get(id)?.use).to.include({ settled: false });
    keep();
    await eventually(() => records.records.get(id)?.use?.settled === true, 'it is settled');
  });

  it('claim after the wait, even with an Idempotency-Key', async () => {
    const { server, approve, parts } = await start('require operation=claimSandbox');
    await server.tenant.post('/sandboxpools', A_POOL);
    const claim = server.tenant.post(
      '/sandboxes?waitApprovalSeconds=60',
      { poolName: 'web', waitTimeoutSeconds: 1 },
      { headers: { 'Idempotency-Key': 'k' } },
    );
    await eventually(() => parts.mirror.count('pending') === 1, 'it waits');
    await approve(parts.mirror.oldest('pending', 1)[0]?.id ?? '');

    expect((await claim).status).to.equal(201);
  });

  it('return the approval, its expiry and the next step', async () => {
    const { server } = await start('require operation=createPool');

    const { json, headers } = await server.tenant.post('/sandboxpools', A_POOL);

    expect(json.detail).to.include({
      operation: 'createPool',
      summary: 'Create a pool from a template, by name or inline: POST /sandboxpools',
      expiresAt: '2026-01-01T00:15:00.000Z',
    });
    expect(headers).not.to.have.property('retry-after');
  });

  it('share an id while they are identical and pending', async () => {
    const { server } = await start('require operation=createPool');
    const ask = () => server.tenant.post('/sandboxpools', A_POOL);

    const ids = await Promise.all([ask(), ask(), ask()]);

    expect(new Set(ids.map(approvalIdOf)).size).to.equal(1);
  });

  it('are limited to 20 per user', async () => {
    const { server } = await start('require operation=createPool');
    for (let count = 0; count < 20; count++)
      approvalIdOf(await server.tenant.post('/sandboxpools', { ...A_POOL, replicas: count }));

    const more = await server.tenant.post('/sandboxpools', { ...A_POOL, replicas: 20 });

    expect([more.status, more.json.errorCode]).to.deep.equal([429, 'RATE_LIMITED']);
    approvalIdOf(await server.colleague.post('/sandboxpools', A_POOL));
  });

  it('are limited to 20 per user over replicas at the same time', async () => {
    const { server, records, operations, clock } = await start('require operation=createPool');
    const other = await anApprovingServer(['require operation=createPool'], {
      records,
      operations,
      clock,
    });
    const key = server.tenant.key ?? '';
    const asks = await Promise.all(
      Array.from({ length: 30 }, (_, count) =>
        (count % 2 ? other.server : server).anyone.post(
          '/sandboxpools',
          { ...A_POOL, replicas: count },
          { key },
        ),
      ),
    );

    expect(asks.filter(({ status }) => status === 403)).to.have.length(20);
    expect(asks.filter(({ status }) => status === 429)).to.have.length(10);
    expect([...records.records.values()]).to.have.length(20);
    await other.stop();
  });

  it('write nothing more once two replicas share one approval', async () => {
    const { server, records, operations, clock } = await start('require operation=createPool');
    const other = await anApprovingServer(['require operation=createPool'], {
      records,
      operations,
      clock,
    });
    const ask = { key: server.tenant.key ?? '' };
    // The one is told of what the other made while its own is on the way.
    const create = records.create.bind(records);
    let theirs: Promise<unknown> | undefined;
    records.create = async (draft) => {
      records.create = create;
      theirs = other.server.anyone.post('/sandboxpools', A_POOL, ask);
      await eventually(() => records.records.size === 1, 'the other has made its own');
      return await create(draft);
    };
    const id = approvalIdOf(await server.anyone.post('/sandboxpools', A_POOL, ask));
    await theirs;
    let writes = 0;
    records.written = () => void (writes += 1);

    for (const each of [server, other.server])
      expect(approvalIdOf(await each.anyone.post('/sandboxpools', A_POOL, ask))).to.equal(id);
    expect(writes).to.equal(0);
    await other.stop();
  });

  it('share one approval if they reach two replicas at once', async () => {
    const { server, records, operations, clock } = await start('require operation=createPool');
    const other = await anApprovingServer(['require operation=createPool'], {
      records,
      operations,
      clock,
    });
    const ask = { key: server.tenant.key ?? '' };

    const ids = await Promise.all([
      server.anyone.post('/sandboxpools', A_POOL, ask),
      other.server.anyone.post('/sandboxpools', A_POOL, ask),
    ]);

    expect(new Set(ids.map(approvalIdOf)).size).to.equal(1);
    expect(records.records.size).to.equal(1);
    await other.stop();
  });

  it('are refused with the reason after a denial', async () => {
    const { server, decide } = await start('require operation=createPool');
    const id = approvalIdOf(await server.tenant.post('/sandboxpools', A_POOL));

    await decide(id, { decision: 'deny', reason: 'not today' });
    const { status, json } = await server.tenant.post('/sandboxpools', A_POOL);

    expect([status, json.errorCode, json.detail?.['reason']]).to.deep.equal([
      403,
      'APPROVAL_DENIED',
      'not today',
    ]);
  });

  it('are refused by a rule that denies them', async () => {
    const { server, records } = await start('deny operation=createPool');

    const { status, json } = await server.tenant.post('/sandboxpools', A_POOL);

    expect([status, json.errorCode, records.records.size]).to.deep.equal([
      403,
      'APPROVAL_DENIED',
      0,
    ]);
  });

  it('do not end running sandboxes with their pool or env, if a rule denies that', async () => {
    const { server } = await start(
      'allow operation=deletePool|deleteEnv|deleteMember',
      'deny operation=deleteSandbox',
    );
    await server.tenant.post('/sandboxpools', A_POOL);

    for (const path of ['/sandboxpools/web', '/envs/e', '/envs/e/sandboxpools/m']) {
      const { status, json } = await server.tenant.delete(`${path}?force`);
      expect([status, json.errorCode], path).to.deep.equal([403, 'APPROVAL_DENIED']);
    }
    expect((await server.tenant.delete('/sandboxpools/web')).status).to.equal(200);
  });

  it('pass without an approval if an earlier rule allows them', async () => {
    const { server } = await start('allow role=user', 'require method=POST');

    expect((await server.tenant.post('/sandboxpools', A_POOL)).status).to.equal(201);
    approvalIdOf(await server.admin.post('/sandboxpools', A_POOL));
  });

  it('get no approval if they are invalid', async () => {
    const { server, records } = await start('require method=POST|DELETE');

    expect((await server.tenant.post('/sandboxpools', { name: 7 })).status).to.equal(400);
    expect((await server.tenant.delete('/sandboxpools/none')).status).to.equal(404);
    expect(records.records.size).to.equal(0);
  });

  it('can wait for the decision', async () => {
    const { server, parts, approve, records } = await start('require operation=createPool');
    const asked = server.tenant.post('/sandboxpools?waitApprovalSeconds=300', A_POOL);
    await eventually(() => parts.gate.waits.size === 1, 'it waits');

    await approve([...records.records.keys()][0] ?? '');

    const { status, headers } = await asked;
    expect(status).to.equal(201);
    expect(headers).not.to.have.property('warning');
  });

  it('do not affect a recreated resource of the same name after the wait', async () => {
    const { server, operations, parts, approve, records } = await start('require method=DELETE');
    await server.tenant.post('/sandboxpools', A_POOL);
    const asked = server.tenant.delete('/sandboxpools/web?waitApprovalSeconds=300');
    await eventually(() => parts.gate.waits.size === 1, 'it waits');
    await madeAnew(operations, 'web');
    const id = [...records.records.keys()][0] ?? '';

    await approve(id);

    const { status, json } = await asked;
    expect([status, json.errorCode]).to.deep.equal([409, 'CONFLICT']);
    expect(records.records.get(id)?.status).to.equal('approved');
  });

  it('wait for at most the requested time', async () => {
    const { server, parts, clock } = await start('require operation=createPool');
    const asked = server.tenant.post('/sandboxpools?waitApprovalSeconds=30', A_POOL);
    await eventually(() => parts.gate.waits.size === 1, 'it waits');

    clock.advance(30_000);

    approvalIdOf(await asked);
    expect(parts.gate.waits.size).to.equal(0);
  });

  it('are refused while the store is unavailable, and never pass', async () => {
    const { server, records, operations, approve } = await start('require operation=createPool');
    const ask = () => server.tenant.post('/sandboxpools', A_POOL);
    const id = approvalIdOf(await ask());
    await approve(id);
    records.away = true;

    expect((await ask()).status).to.equal(503);
    expect((await server.tenant.post('/sandboxpools', { ...A_POOL, name: 'b' })).status).to.equal(
      503,
    );
    expect(operations.pools.size).to.equal(0);
    records.away = false;
    expect((await ask()).status).to.equal(201);
  });

  it('can be approved for a session', async () => {
    const { server, approve, clock } = await start('require operation=createPool');
    const ask = (name: string, session = 'run-7') =>
      server.tenant.post(
        '/sandboxpools',
        { ...A_POOL, name },
        { headers: { 'X-Session-Id': session } },
      );
    const id = approvalIdOf(await ask('a'));
    expect((await approve(id, 'session')).json).to.deep.include({ scope: 'session' });

    expect((await ask('a')).status).to.equal(201);
    expect((await ask('b')).status).to.equal(201);
    approvalIdOf(await ask('c', 'run-8'));
    const asAdmin = approvalIdOf(
      await server.admin.post('/sandboxpools', A_POOL, { headers: { 'X-Session-Id': 'run-7' } }),
    );
    expect((await approve(asAdmin, 'session')).status, 'of any namespace').to.equal(400);
    clock.advance(8 * 3_600_000);
    approvalIdOf(await ask('c'));
  });

  it('do not pass in a session while the store is unavailable, or once the approval is gone', async () => {
    const { server, records, approve } = await start('require operation=createPool');
    const headers = { 'X-Session-Id': 'run-7' };
    const ask = (name: string) =>
      server.tenant.post('/sandboxpools', { ...A_POOL, name }, { headers });
    const id = approvalIdOf(await ask('a'));
    await approve(id, 'session');
    expect((await ask('a')).status).to.equal(201);

    records.away = true;
    expect((await ask('b')).status).to.equal(503);
    records.away = false;
    expect((await ask('b')).status).to.equal(201);
    records.records.delete(id); // and nobody was told as yet
    const { status, json } = await ask('c');
    expect([status, json.errorCode]).to.deep.equal([409, 'CONFLICT']);
  });

  it('return an approval if the request was refused without effect', async () => {
    const { server, approve, operations } = await start('require operation=claimSandbox');
    await server.tenant.post('/sandboxpools', { ...A_POOL, replicas: 0 });
    const ask = () => server.tenant.post('/sandboxes', { poolName: 'web' });
    const id = approvalIdOf(await ask());
    await approve(id);

    expect((await ask()).status).to.equal(429);
    await server.tenant.put('/sandboxpools/web', { replicas: 1 });
    expect((await ask()).status).to.equal(201);
    expect(operations.sandboxes.size).to.equal(1);
  });

  it('get the stored answer of an Idempotency-Key again, without another approval', async () => {
    const { server, approve } = await start('require operation=createPool');
    const ask = () =>
      server.tenant.post('/sandboxpools', A_POOL, { headers: { 'Idempotency-Key': 'k' } });
    await approve(approvalIdOf(await ask()));

    const first = await ask();
    it_.clock.advance(60_000);
    const again = await ask();

    expect([first.status, again.status, again.text]).to.deep.equal([201, 201, first.text]);
    expect(again.headers['idempotency-replayed']).to.equal('true');
  });
});
