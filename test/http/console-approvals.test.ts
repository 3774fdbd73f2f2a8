import { expect } from 'chai';
import { visible } from '../../src/http/console/html.ts';
import { connectRaw, parseRaw } from '../support/harness/http-client.ts';
import { eventually } from '../support/harness/eventually.ts';
import { approvalIdOf } from './an-approving-server.ts';
import { aConsole, anOperator, type Browser, type ConsoleWorld } from './console-support.ts';

const MINUTE_MS = 60_000;
const A_POOL = { name: 'web', templateName: 'default', replicas: 2 };

/** The text of a page as a browser shows it. */
const shownText = (page: string): string =>
  page
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&lt;/g, '<')
    .replaceAll(/&gt;/g, '>')
    .replaceAll(/&quot;/g, '"')
    .replaceAll(/&#39;/g, "'")
    .replaceAll(/&#96;/g, '`')
    .replaceAll(/&amp;/g, '&');

describe('the approval page', () => {
  let world: ConsoleWorld;
  let olga: Browser;
  beforeEach(async () => {
    world = await aConsole({
      approvals: ['require operation=createPool', 'require method=PUT', 'require method=DELETE'],
    });
    anOperator(world, 'olga');
    anOperator(world, 'ada');
    anOperator(world, 'vera', 'viewer');
    olga = world.browser();
    await olga.logIn('olga');
  });
  afterEach(() => world.stop());

  const ask = () => world.server.tenant.post('/sandboxpools', A_POOL);
  const decide = async (
    browser: Browser,
    id: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ) =>
    await browser.post(
      `/console/approvals/${id}`,
      { csrf: await browser.csrf(), ...fields },
      headers,
    );
  const statusOf = async (id: string) =>
    (await world.server.tenant.get(`/approvals/${id}`)).json.status;

  it('lists pending requests, and approves one request once', async () => {
    const id = approvalIdOf(await ask());
    const list = await olga.get('/console/approvals?status=pending');
    const answer = await decide(olga, id, { decision: 'approve' });

    expect(shownText(list.text)).to.contain('createPool').and.to.contain('POST /sandboxpools');
    expect(answer.headers['location']).to.equal(`/console/approvals/${id}`);
    expect(await statusOf(id)).to.equal('approved');
    expect((await ask()).status).to.equal(201);
    const over = await olga.get(`/console/approvals/${id}`);
    expect(shownText(over.text)).to.contain('consumed').and.to.contain('olga');
    expect(over.text).to.not.contain('value="approve"');
  });

  it('is audited with the approval, the operator, the decision and the session', async () => {
    const id = approvalIdOf(await ask());
    await decide(olga, id, { decision: 'approve' });
    const [session] = await world.coordination.consoleSessions();

    expect(world.audit.filter(({ operation }) => operation === 'decideApproval')).to.deep.equal([
      {
        requestId: world.audit.at(-1)?.requestId,
        operation: 'decideApproval',
        caller: undefined,
        status: 303,
        errorCode: undefined,
        target: {
          approvalId: id,
          operator: 'olga',
          sessionId: session?.id,
          decision: 'approve',
          scope: 'once',
        },
      },
    ]);
  });

  it('denies with a reason, which the requester receives', async () => {
    const id = approvalIdOf(await ask());
    await decide(olga, id, { decision: 'deny', reason: 'not before Monday' });
    const again = await ask();

    expect(again.json.errorCode).to.equal('APPROVAL_DENIED');
    expect(again.json.detail).to.include({ reason: 'not before Monday' });
    expect((await decide(olga, id, { decision: 'approve' })).status, 'it is final').to.equal(409);
  });

  it('shows every byte of the request', async () => {
    const raw = `\n{ "name":"web",\r\n\t"templateName" : "default", "replicas": 2.0e0, "labels": {"a":"${'x'.repeat(1_000)}","b":"<b>&amp;"} }`;
    const id = approvalIdOf(
      await world.server.tenant.post('/sandboxpools?x=%3Cscript%3E', undefined, {
        raw,
        headers: { 'X-Session-Id': 'job-7', 'Idempotency-Key': 'k"1' },
      }),
    );
    const { text } = await olga.get(`/console/approvals/${id}`);
    const [, head = '', body = ''] =
      /<pre class="given">\n([^]*?)<\/pre>[^]*<pre class="given">\n([^]*?)<\/pre>/.exec(text) ?? [];

    expect(shownText(body)).to.equal(visible(raw));
    expect(shownText(head)).to.equal(
      'POST /sandboxpools?x=%3Cscript%3E\ncontent-type: application/json\n' +
        'idempotency-key: k"1\nx-session-id: job-7',
    );
  });

  it('shows the route of a request, and its fields without effect', async () => {
    const answer = await world.server.tenant.post('/sandboxpools', { ...A_POOL, replica: 9 });
    const { text } = await olga.get(`/console/approvals/${approvalIdOf(answer)}`);

    expect(shownText(text))
      .to.contain('REST POST /sandboxpools')
      .and.contain('Fields of the body that have no effect: replica');
  });

  it('neither executes nor reverses text in a request', async () => {
    const nasty = '</pre><script>alert(1)</script>\u202egnp.exe\u2066\u200b"onload=x\u{e0041}';
    const id = approvalIdOf(
      await world.server.tenant.post('/sandboxpools', {
        ...A_POOL,
        labels: { nasty },
        annotations: { [nasty]: nasty },
      }),
    );
    const page = await olga.get(`/console/approvals/${id}`);
    await decide(olga, id, { decision: 'deny', reason: nasty });
    const decided = await olga.get(`/console/approvals/${id}`);

    for (const { text } of [page, decided]) {
      expect(text).to.not.contain('<script').and.to.not.contain('onload=x"');
      expect(text).to.not.match(/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u{e0000}-\u{e007f}]/u);
      expect(text).to.contain('[U+202E]').and.to.contain('[U+E0041]');
    }
  });

  it('shows combining marks as code points, and leaves ordinary text unchanged', () => {
    expect(visible('ok\u0336')).to.equal('ok[U+0336]');
    expect(visible('o\u20dd')).to.equal('o[U+20DD]');
    expect(visible(`a${'\u0301'.repeat(6)}b`)).to.equal(
      `a${'\u0301'.repeat(4)}${'[U+0301]'.repeat(2)}b`,
    );
    for (const word of ['Ti\u1ebf\u0301ng', '\u0939\u093f\u0928\u094d\u0926\u0940'])
      expect(visible(word)).to.equal(word);
  });

  it('shows the changes of a PUT, and the running sandboxes that a DELETE would end', async () => {
    await world.server.admin.post('/sandboxpools', A_POOL);
    const mine = await world.server.tenant.post('/sandboxpools', { ...A_POOL, name: 'mine' });
    await decide(olga, approvalIdOf(mine), { decision: 'approve' });
    expect(
      (await world.server.tenant.post('/sandboxpools', { ...A_POOL, name: 'mine' })).status,
    ).to.equal(201);
    const put = await world.server.tenant.put('/sandboxpools/mine', { replicas: 9 });
    const change = shownText((await olga.get(`/console/approvals/${approvalIdOf(put)}`)).text);
    const gone = await world.server.tenant.delete('/sandboxpools/mine');
    const end = shownText((await olga.get(`/console/approvals/${approvalIdOf(gone)}`)).text);

    expect(change.replaceAll(/\s+/g, ' ')).to.contain('Field Now Then replicas 2 9');
    expect(change).not.to.contain('fields more');
    expect(end.replaceAll(/\s+/g, ' ')).to.contain('Sandboxes that run in it now: 0');
  });

  it('shows current quotas and templates, and the name of the key', async () => {
    const { admin } = world.server;
    const pageOf = async (path: string, body: object): Promise<string> => {
      const id = approvalIdOf(await admin.put(path, body));
      return shownText((await olga.get(`/console/approvals/${id}`)).text).replaceAll(/\s+/g, ' ');
    };
    const quotas = await pageOf('/admin/quotas/blue/ada', { sandboxes: 7, cpu: '16' });
    const crdJson = (description: string): string =>
      JSON.stringify({
        ...{ apiVersion: 'sandpool.dev/v1alpha1', kind: 'SandboxTemplate' },
        metadata: { name: 'small' },
        spec: { description, containers: [{ name: 'main', image: 'host' }] },
      });
    await admin.post('/admin/sandbox-templates', { crdJson: crdJson('of old') });
    const template = await pageOf('/admin/sandbox-templates/small', {
      crdJson: crdJson('of today'),
    });

    expect(quotas)
      .to.match(/sandboxes \S+ 7 /)
      .and.contain('cpu "no limit" "16"');
    expect(quotas).to.not.contain('can’t be read');
    expect(template).to.contain('crdJson.metadata.name "small" "small"');
    expect(template).to.contain('crdJson.spec.description "of old" "of today"');
    expect(quotas).to.match(/With the key \S+: \S+ \(admin\)/);
    expect(quotas).to.not.contain('no key of this cluster');
  });

  it('counts the fields that it does not list', async () => {
    await decide(olga, approvalIdOf(await ask()), { decision: 'approve' });
    await ask();
    const unknown = Object.fromEntries(Array.from({ length: 520 }, (_, n) => [`x${n}`, n]));
    const put = await world.server.tenant.put('/sandboxpools/web', { ...unknown, replicas: 0 });
    const { text } = await olga.get(`/console/approvals/${approvalIdOf(put)}`);

    expect(text.match(/<td><span class="given short">x\d+</g)).to.have.length(500);
    expect(shownText(text)).to.contain('It sets 21 fields more');
  });

  it('reads nothing for a request that changes no existing resource', async () => {
    const id = approvalIdOf(await ask());
    Object.assign(world.server.operations, {
      listPools: () => Promise.reject(new Error('a fault')),
    });

    expect((await olga.get(`/console/approvals/${id}`)).status).to.equal(200);
  });

  it('shows the rest if the content is unreadable, and prevents an approval', async () => {
    const id = approvalIdOf(await ask());
    const [record] = await world.approvals.list();
    await world.approvals.update({ ...record!, content: Buffer.alloc(64).toString('base64') });
    const page = await olga.get(`/console/approvals/${id}`);
    const approved = await decide(olga, id, { decision: 'approve' });

    expect(page.status).to.equal(200);
    expect(shownText(page.text))
      .to.contain('POST /sandboxpools')
      .and.contain('What was sent can’t be read');
    expect(page.text).to.contain('value="deny"').and.not.contain('value="approve"');
    expect([approved.status, await statusOf(id)]).to.deep.equal([503, 'pending']);
    expect((await decide(olga, id, { decision: 'deny', reason: 'unseen' })).status).to.equal(303);
    expect(await statusOf(id)).to.equal('denied');
  });

  it('neither executes nor reverses the names of requester, resource and operator', async () => {
    const nasty = '"><script>alert(1)</script>\u202egnp';
    const { tenant } = world.server;
    const id = approvalIdOf(
      await tenant.post(`/sandboxpools?x=${encodeURIComponent(nasty)}`, A_POOL, {
        headers: { 'Idempotency-Key': '"><script>' },
      }),
    );
    const [record] = await world.approvals.list();
    // of names that are other people's to give, such as claims and Kubernetes objects
    await world.approvals.update({
      ...record!,
      summary: nasty,
      operation: nasty,
      path: `/${nasty}`,
      query: nasty,
      namespace: nasty,
      sessionId: nasty,
      principal: { ...record!.principal, team: nasty, user: nasty, keyId: nasty, persons: [nasty] },
      decidedBy: nasty,
      reason: nasty,
    });
    const pages = [
      await olga.get('/console/approvals'),
      await olga.get(`/console/approvals/${id}`),
      await olga.get(`/console/login?next=${encodeURIComponent(`/console/${nasty}`)}`),
      await olga.get(`/console/link?token=${encodeURIComponent(nasty)}`),
      await olga.get(
        `/console/approvals?status=${encodeURIComponent(nasty)}&offset=${nasty.length}`,
      ),
      await olga.get(`/console/approvals/${encodeURIComponent(nasty)}`),
      await decide(olga, id, { decision: nasty, reason: nasty }),
    ];

    for (const [at, { text }] of pages.entries()) {
      expect(text, `page ${at}`).to.match(/^<!doctype html>/);
      expect(text, `page ${at}`).to.not.match(/<script|[\u202a-\u202e\u2066-\u2069]/);
    }
    expect(pages[1]?.text.match(/&lt;script&gt;/g)?.length).to.be.at.least(9);
  });

  it("is closed to the requester, whatever their session's name", async () => {
    const ada = world.browser(); // the tenant key is ada's
    await ada.logIn('ada');
    const id = approvalIdOf(await ask());
    const own = await decide(ada, id, { decision: 'approve' });

    expect(own.status).to.equal(403);
    expect(shownText(own.text)).to.contain('you sent this request');
    expect(await statusOf(id)).to.equal('pending');
  });

  it('refuses decisions of a viewer, without a session, or of a locked operator', async () => {
    const id = approvalIdOf(await ask());
    const vera = world.browser();
    await vera.logIn('vera');
    const locked = world.browser();
    await locked.logIn('olga');
    const csrf = await locked.csrf();
    const seen = await vera.get(`/console/approvals/${id}`);
    expect(shownText(seen.text))
      .to.contain('Only operators can see the body')
      .and.not.contain('replicas');
    const viewer = await decide(vera, id, { decision: 'approve' });
    const nobody = await world.browser().post(`/console/approvals/${id}`, { decision: 'approve' });
    world.operators.lock('olga');
    const of = await locked.post(`/console/approvals/${id}`, { decision: 'approve', csrf });

    expect([viewer.status, nobody.status, of.status]).to.deep.equal([403, 303, 303]);
    expect(nobody.headers['location']).to.equal('/console/login');
    expect(await statusOf(id)).to.equal('pending');
  });

  it('refuses decisions without CSRF field, Origin and form, and unknown ones', async () => {
    const id = approvalIdOf(await ask());
    const answers = [
      await olga.post(`/console/approvals/${id}`, { decision: 'approve' }),
      await decide(olga, id, { decision: 'approve' }, { Origin: 'https://evil.example' }),
      await decide(olga, id, { decision: 'approve' }, { 'Content-Type': 'application/json' }),
      await decide(olga, id, { decision: 'yes' }),
      await decide(olga, id, { decision: 'approve', scope: 'session' }),
      await decide(olga, id, { decision: 'approve', scope: 'ever' }),
      await decide(olga, '00000000-0000-7000-8000-000000000000', { decision: 'approve' }),
      await olga.get(`/console/approvals/${id}?decision=approve&csrf=${await olga.csrf()}`),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([
      403, 403, 415, 400, 400, 400, 404, 200,
    ]);
    expect(await statusOf(id)).to.equal('pending');
  });

  it('requires a new login after a while, which ends the old session', async () => {
    const old = world.browser();
    for (const [name, value] of olga.cookies) old.cookies.set(name, value);
    world.clock.advance(15 * MINUTE_MS + 1);
    const id = approvalIdOf(await ask());
    const page = await olga.get(`/console/approvals/${id}`);
    const refused = await decide(olga, id, { decision: 'approve' });
    const login = refused.headers['location'] ?? '';

    expect(page.text).to.not.contain('value="approve"');
    expect(login).to.equal(`/console/login?next=/console/approvals/${id}`);
    expect(await statusOf(id)).to.equal('pending');
    expect(shownText((await olga.get(login)).text)).to.contain('ends that session');
    await olga.logIn('olga');
    expect(await old.isLoggedIn()).to.equal(false);
    await decide(olga, id, { decision: 'approve' });
    expect(await statusOf(id)).to.equal('approved');
  });

  it('refuses a decision whose session ends while its body arrives', async () => {
    const id = approvalIdOf(await ask());
    const cookie = [...olga.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const csrf = await olga.csrf();
    const asks = [
      {
        path: `/console/approvals/${id}`,
        type: 'application/x-www-form-urlencoded',
        body: `decision=approve&csrf=${csrf}`,
        refused: 303,
      },
      {
        path: `/approvals/${id}/decision`,
        type: 'application/json',
        body: '{"decision":"approve"}',
        refused: 403,
      },
    ];
    const slow = await Promise.all(
      asks.map(async ({ path, type, body }) => {
        const connection = await connectRaw(world.server.port);
        connection.socket.write(
          `POST ${path} HTTP/1.1\r\nHost: ${new URL(world.site).host}\r\nOrigin: ${world.site}\r\n` +
            `Cookie: ${cookie}\r\nX-CSRF-Token: ${csrf}\r\nContent-Type: ${type}\r\n` +
            `Content-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
        );
        await eventually(() => connection.received().includes('100 Continue'), 'its body is read');
        return connection;
      }),
    );
    await olga.post('/console/logout', { csrf });
    const answers = await Promise.all(
      slow.map(async ({ socket, closed, received }, at) => {
        const head = received().length;
        socket.write(asks[at]?.body ?? '');
        return parseRaw((await closed()).slice(head)).status;
      }),
    );

    expect(answers).to.deep.equal(asks.map(({ refused }) => refused));
    expect(await statusOf(id)).to.equal('pending');
  });

  it("accepts API clients with the session's token in a header", async () => {
    const id = approvalIdOf(await ask());
    const { csrfToken } = JSON.parse((await olga.get('/console/session')).text) as {
      csrfToken: string;
    };
    const cookie = [...olga.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const good = { Cookie: cookie, Origin: world.site, 'X-CSRF-Token': csrfToken };
    const post = (headers: Readonly<Record<string, string>>) =>
      world.server.anyone.post(`/approvals/${id}/decision`, { decision: 'approve' }, { headers });
    const { 'X-CSRF-Token': _, ...noToken } = good;
    const { Origin: __, ...noOrigin } = good;
    const refused = [
      await post(noToken),
      await post(noOrigin),
      await post({ ...good, 'X-CSRF-Token': `${csrfToken}x` }),
      await post({ ...good, 'SERVICE-API-KEY': world.server.admin.key ?? '' }),
      await post({ ...good, 'Content-Type': 'text/plain' }),
      await post({ 'SERVICE-API-KEY': world.server.admin.key ?? '' }),
    ];

    expect(refused.map(({ status }) => status)).to.deep.equal([403, 403, 403, 400, 415, 403]);
    expect(await statusOf(id)).to.equal('pending');
    expect((await post(good)).status).to.equal(200);
  });
});
