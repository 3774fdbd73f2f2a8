import { expect } from 'chai';
import { commandDaemon } from '../../src/cli/common/control.ts';
import { approvalIdOf } from '../http/an-approving-server.ts';
import { atConsole, useLink, type PersonAtConsole } from '../support/harness/a-console-session.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import {
  exchangeRaw,
  HttpClient,
  parseRaw,
  type HttpAnswer,
} from '../support/harness/http-client.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

const PASSWORD = 'correct horse battery staple';

/** Sessions, grants and effects of a whole daemon; test/http/approval-attacks.test.ts has the rest. */
describe('attacks on approvals of a real daemon', function () {
  let daemon: DaemonUnderTest;
  let admin: HttpClient;
  let anyone: HttpClient;
  let olga: PersonAtConsole;
  let users = 0;
  let asking: HttpClient;
  let user: string;
  let pool: string;

  before(async () => {
    daemon = await DaemonUnderTest.start([
      ...line`--default-pool-replicas 3 --log-level error --approvals-rules`,
      'require operation=createPool|claimSandbox',
    ]);
    admin = daemon.client(daemon.adminKey);
    anyone = new HttpClient(daemon.run.port);
    for (const name of ['olga', 'otto'])
      await command('/operators/add', { name, role: 'operator', users: [], password: PASSWORD });
  });
  after(async () => {
    anyone?.close();
    await daemon?.dispose();
  });

  /** A user of their own for each: of one user 20 requests wait at most. */
  beforeEach(async () => {
    users += 1;
    user = `user-${users}`;
    pool = `pool-${users}`;
    asking = daemon.client(await aKeyOf(user));
    olga = await atConsole(daemon, anyone, 'olga');
  });

  const command = (path: string, body: object) => commandDaemon(daemon.dataDir, path, body);
  const aKeyOf = async (name: string, team = 'blue'): Promise<string> =>
    (await admin.post('/admin/api-keys', { team, user: name })).json.apiKey ?? '';
  const aPool = () => ({ name: pool, templateName: 'default', replicas: 0 });
  const ask = (path = '/sandboxpools', headers = {}, client = asking): Promise<HttpAnswer> =>
    client.post(path, aPool(), { headers });
  const statusOf = async (id: string) => (await asking.get(`/approvals/${id}`)).json.status;
  const hasPool = async (): Promise<boolean> =>
    (await asking.get(`/sandboxpools/${pool}`)).status === 200;
  /** Neither was it decided, nor did anything come of it. */
  const expectUntouched = async (id: string): Promise<void> => {
    expect(await statusOf(id)).to.equal('pending');
    expect(await hasPool()).to.equal(false);
  };
  const outcomeOf = ({ status, json }: HttpAnswer): string => `${status} ${json.errorCode ?? ''}`;

  it('a closed session or a used link decides nothing', async () => {
    const id = approvalIdOf(await ask());
    const csrf = olga.headers['X-CSRF-Token'] ?? '';
    const left = await anyone.post('/console/logout', undefined, {
      raw: new URLSearchParams({ csrf }).toString(),
      headers: { ...olga.headers, 'Content-Type': 'application/x-www-form-urlencoded' },
    });
    expect(left.status).to.equal(303);
    const locked = await atConsole(daemon, anyone, 'otto');
    await command('/operators/lock', { identity: 'otto' });
    await command('/operators/unlock', { identity: 'otto' });

    expect(outcomeOf(await olga.approve(id))).to.equal('403 CONSOLE_SESSION_REQUIRED');
    expect(outcomeOf(await locked.approve(id))).to.equal('403 CONSOLE_SESSION_REQUIRED');
    expect((await useLink(anyone, daemon.run.port, olga.link)).status).to.equal(403);
    await expectUntouched(id);
  });

  it('an approval is valid only for the same bytes, names, headers, key and spelling', async () => {
    const id = approvalIdOf(await ask());
    expect((await olga.approve(id)).status).to.equal(200);
    const body = JSON.stringify(aPool());
    const raw = (text: string) => asking.post('/sandboxpools', undefined, { raw: text });
    const colleague = daemon.client(await aKeyOf(user));
    const held = [
      await raw(`${body} `),
      await raw(body.replace(':0', ':1')),
      await raw(body.replace('"name"', '"n\\u0061me"')),
      await ask('/sandboxpools?x=1'),
      await ask('/sandboxpools?namespace=team-blue'),
      ...(await Promise.all(
        [
          { Accept: 'application/x-tar' },
          { 'Idempotency-Key': 'a' },
          { 'If-Match': '"1"' },
          { 'X-Session-Id': 'run' },
        ].map((headers) => ask('/sandboxpools', headers)),
      )),
      await ask('/sandboxpools', {}, colleague),
    ].map(({ status }) => status);
    const lost = [];
    for (const path of ['/sandboxpools/', '//sandboxpools', '/Sandboxpools', '/v1/v1/sandboxpools'])
      lost.push((await ask(path)).status);

    expect(held.every((status) => status === 403 || status === 400)).to.equal(true);
    expect(held.filter((status) => status === 403)).to.have.length.at.least(9);
    expect(lost).to.deep.equal([404, 404, 404, 404]);
    expect(await hasPool()).to.equal(false);
    expect(await statusOf(id)).to.equal('approved');
    expect((await ask('/v1/sandboxpools')).status, 'the same one').to.equal(201);
  });

  it('a decision is final, and a request sent earlier does not run twice', async () => {
    const id = approvalIdOf(await ask());
    const sent =
      `POST /approvals/${id}/decision HTTP/1.1\r\nHost: ${olga.headers['Origin']?.slice(7)}\r\n` +
      `Cookie: ${olga.headers['Cookie']}\r\nOrigin: ${olga.headers['Origin']}\r\n` +
      `X-CSRF-Token: ${olga.headers['X-CSRF-Token']}\r\nContent-Type: application/json\r\n` +
      `Content-Length: 22\r\nConnection: close\r\n\r\n{"decision":"approve"}`;
    const replay = async () => parseRaw(await exchangeRaw(daemon.run.port, sent));
    expect((await replay()).status).to.equal(200);
    expect((await ask()).status).to.equal(201);

    expect(outcomeOf(await replay())).to.equal('409 ALREADY_DECIDED');
    expect(outcomeOf(await olga.decide(id, { decision: 'deny' }))).to.equal('409 ALREADY_DECIDED');
    expect((await ask()).status).to.be.oneOf([201, 409]); // the first answer, or that it was used
    expect(await statusOf(id)).to.equal('consumed');
    expect((await asking.get('/sandboxpools')).json.total).to.equal(1);
  });

  it('50 identical requests have one effect', async () => {
    const tenant = daemon.client();
    await stocked(tenant, 3);
    const claim = () => tenant.post('/sandboxes', { poolName: 'default' });
    const id = approvalIdOf(await claim());
    expect((await olga.approve(id)).status).to.equal(200);
    const answers = await Promise.all(Array.from({ length: 50 }, claim));

    const first = answers.filter(
      ({ status, headers }) => status === 201 && !headers['idempotency-replayed'],
    );
    expect(first).to.have.length(1);
    // 503: the record changed under it; nothing came of that one
    for (const { status } of answers) expect(status).to.be.oneOf([201, 403, 409, 503]);
    expect((await tenant.get('/sandboxes?phase=Running')).json.total).to.equal(1);
  });
});
