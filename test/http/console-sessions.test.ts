import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { rejection } from '../support/harness/rejection.ts';
import { aConsole, anOperator, PASSWORD, type ConsoleWorld } from './console-support.ts';

const SESSION = '__Host-sandpool-session';
const MINUTE_MS = 60_000;

describe('console sessions', () => {
  let world: ConsoleWorld;
  beforeEach(async () => {
    world = await aConsole();
    anOperator(world, 'ada');
    anOperator(world, 'bob', 'admin');
  });
  afterEach(() => world.stop());

  it('redirect to the login, and start with a cookie for this host only', async () => {
    const browser = world.browser();

    const before = await browser.get('/console/sessions');
    const login = await browser.logIn('ada');

    expect(before.status).to.equal(303);
    expect(before.headers['location']).to.equal('/console/login?next=%2Fconsole%2Fsessions');
    expect(login.status).to.equal(200);
    const [cookie] = (login.headers['set-cookie'] ?? '').split(/,(?=__Host-)/);
    expect(cookie).to.match(
      /^__Host-sandpool-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    expect((await browser.get('/console/sessions')).text).to.contain('ada');
  });

  it('show pages without scripts that are never cached', async () => {
    const { headers, text } = await world.browser().get('/console/login');

    expect(headers).to.include({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
    });
    expect(headers['content-security-policy']).to.equal(
      "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; " +
        "frame-ancestors 'none'",
    );
    expect(text).to.not.match(/<script|<style|style=|\son\w+=/);
  });

  it('do not start with a wrong password, an unknown name, or a locked operator', async () => {
    world.operators.lock('bob');
    const browser = world.browser();
    const answers = [
      await browser.logIn('ada', 'wrong'),
      await browser.logIn('nobody'),
      await browser.logIn('bob'),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([403, 403, 403]);
    expect(new Set(answers.map(({ text }) => text)).size, 'all say the same').to.equal(1);
    expect(browser.cookies.size).to.equal(0);
  });

  it('end after half an hour without use, and after 12 hours in any case', async () => {
    const [idle, busy] = [world.browser(), world.browser()];
    await idle.logIn('ada');
    await busy.logIn('ada');
    for (let n = 0; n < 24; n++) {
      expect(await busy.isLoggedIn(), `after ${n} times 30 minutes`).to.equal(true);
      world.clock.advance(30 * MINUTE_MS - 1);
    }
    world.clock.advance(MINUTE_MS);

    expect(await idle.isLoggedIn()).to.equal(false);
    expect(await busy.isLoggedIn()).to.equal(false);
  });

  it('never reuse a cookie from the browser: each login makes a new one', async () => {
    const browser = world.browser();
    const fixed = 'A'.repeat(43);
    browser.cookies.set(SESSION, fixed);
    await browser.logIn('ada');

    expect(browser.cookies.get(SESSION)).to.not.equal(fixed);
    const attacker = world.browser();
    attacker.cookies.set(SESSION, fixed);
    expect(await attacker.isLoggedIn()).to.equal(false);
  });

  it('end when the same browser logs in again', async () => {
    const browser = world.browser();
    await browser.logIn('ada');
    const old = world.browser();
    for (const [name, value] of browser.cookies) old.cookies.set(name, value);
    expect(await old.isLoggedIn()).to.equal(true);
    await browser.logIn('ada');

    expect(await old.isLoggedIn()).to.equal(false);
    expect(await browser.isLoggedIn()).to.equal(true);
  });

  it('cannot use a key in a cookie, or two cookies of the same name', async () => {
    const browser = world.browser();
    await browser.logIn('ada');
    const good = browser.cookies.get(SESSION) ?? '';
    const look = (cookie: string) => world.browser().get('/console/sessions', { Cookie: cookie });
    const answers = [
      await look(`${SESSION}=${world.server.admin.key ?? ''}`),
      await look(`${SESSION}=${good}; ${SESSION}=${'A'.repeat(43)}`),
      await look(`sandpool-session=${good}`),
      await look(`${SESSION}=${good}`),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([303, 303, 303, 200]);
  });

  it('cannot be used with a stolen cookie after the logout', async () => {
    const browser = world.browser();
    await browser.logIn('ada');
    const thief = world.browser();
    thief.cookies.set(SESSION, browser.cookies.get(SESSION) ?? '');
    const csrf = await browser.csrf();
    await browser.post('/console/logout', { csrf });

    expect(await thief.isLoggedIn()).to.equal(false);
    expect(browser.cookies.has(SESSION)).to.equal(false);
  });

  it('can all be ended at once', async () => {
    const [one, other, bobs] = [world.browser(), world.browser(), world.browser()];
    await one.logIn('ada');
    await other.logIn('ada');
    await bobs.logIn('bob');
    await one.post('/console/logout-everywhere', { csrf: await one.csrf() });

    expect(await other.isLoggedIn()).to.equal(false);
    expect(await bobs.isLoggedIn()).to.equal(true);
  });

  it('end when their operator is locked, removed or gets a new password', async () => {
    const browser = world.browser();
    for (const end of [
      () => world.operators.lock('ada'),
      () => world.operators.remove('ada'),
      () =>
        world.operators.put({
          name: 'ada',
          role: 'operator',
          passwordHash: '$argon2id$another',
          users: [],
          addedAt: '2026-01-02T00:00:00Z',
        }),
    ]) {
      world.operators.unlock('ada');
      anOperator(world, 'ada');
      await browser.logIn('ada');
      expect(await browser.isLoggedIn()).to.equal(true);
      end();
      expect(await browser.isLoggedIn()).to.equal(false);
    }
  });

  it('can be listed and ended by their user and by an admin', async () => {
    const [ada, bob] = [world.browser(), world.browser()];
    await ada.logIn('ada');
    await bob.logIn('bob');
    const adas = await ada.get('/console/sessions');
    const bobs = await bob.get('/console/sessions');
    const sessionOfAda = /name="session"\s+value="([^"]+)"/.exec(bobs.text)?.[1] ?? '';
    const [bobsOwn] = (await world.coordination.consoleSessions()).filter(
      ({ operator }) => operator === 'bob',
    );

    expect(adas.text).to.not.contain('bob');
    expect(
      (
        await ada.post('/console/sessions/end', {
          session: bobsOwn?.id ?? '',
          csrf: await ada.csrf(),
        })
      ).status,
    ).to.equal(404);
    expect(await bob.isLoggedIn()).to.equal(true);
    await bob.post('/console/sessions/end', { session: sessionOfAda, csrf: await bob.csrf() });
    expect(await ada.isLoggedIn()).to.equal(false);
  });

  it('refuse writes without the exact Origin, the CSRF field and a form', async () => {
    const browser = world.browser();
    await browser.logIn('ada');
    const csrf = await browser.csrf();
    const other = world.browser();
    await other.logIn('ada');
    const anothers = await other.csrf();
    const refused = [
      await browser.post('/console/logout', {}),
      await browser.post('/console/logout', { csrf: anothers }),
      await browser.post('/console/logout', { csrf }, { Origin: 'null' }),
      await browser.post('/console/logout', { csrf }, { Origin: `${world.site}.evil.example` }),
      await browser.post(
        '/console/logout',
        { csrf },
        { Origin: world.site.replace('http', 'https') },
      ),
      await browser.post('/console/logout', { csrf }, { 'Content-Type': 'text/plain' }),
      await browser.get('/console/logout'),
      await browser.post('/console/logout', { csrf }, { 'SERVICE-API-KEY': 'sp_x' }),
    ];

    expect(refused.map(({ status }) => status)).to.deep.equal([
      403, 403, 403, 403, 403, 415, 405, 400,
    ]);
    expect(await browser.isLoggedIn()).to.equal(true);
  });

  it("are available under the daemon's own name only", async () => {
    const browser = world.browser();
    const rebound = await browser.get('/console/login', { Host: 'evil.example' });
    const withKey = await browser.get('/console/login', {
      'SERVICE-API-KEY': world.server.admin.key ?? '',
    });

    expect(rebound.status).to.equal(404);
    expect(withKey.status).to.equal(400);
  });

  it('are audited, without secrets', async () => {
    const browser = world.browser();
    await browser.logIn('ada', 'not the password');
    await browser.logIn('ada');
    const [session] = await world.coordination.consoleSessions();

    expect(
      world.audit.map(({ operation, status, target }) => [operation, status, target]),
    ).to.deep.equal([
      ['logInAtConsole', 403, { method: 'password', address: '127.0.0.1', operator: 'ada' }],
      ['logInAtConsole', 200, { operator: 'ada', sessionId: session?.id, method: 'password' }],
    ]);
    const told = JSON.stringify([world.audit, world.server.log, session]);
    for (const secret of [PASSWORD, 'not the password', browser.cookies.get(SESSION) ?? '?'])
      expect(told).to.not.contain(secret);
  });
});

describe('links to the console', () => {
  let world: ConsoleWorld;
  beforeEach(async () => {
    world = await aConsole();
  });
  afterEach(() => world.stop());

  it('log in once, even if they are previewed', async () => {
    const token = await world.access.issueLink(undefined);
    const [scanner, browser, thief] = [world.browser(), world.browser(), world.browser()];
    await scanner.get(`/console/link?token=${token}`);
    await browser.get(`/console/link?token=${token}`);
    await browser.post('/console/link', { token });
    const again = await thief.post('/console/link', { token });

    expect(await browser.isLoggedIn()).to.equal(true);
    const { person } = (await world.access.openSession(browser.cookies.get(SESSION) ?? '')) ?? {};
    expect(person).to.deep.include({ operator: 'owner', role: 'admin', users: ['default'] });
    expect(again.status).to.equal(403);
    expect(await thief.isLoggedIn()).to.equal(false);
    expect((await thief.get(`/console/link?token=${token}`)).status).to.equal(403);
  });

  it('log in one of many simultaneous users', async () => {
    const token = await world.access.issueLink(undefined);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => world.browser().post('/console/link', { token })),
    );

    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    expect(await world.coordination.consoleSessions()).to.have.length(1);
  });

  it('limit guesses, which are audited while they count', async () => {
    const browser = world.browser();
    const statuses: number[] = [];
    for (let n = 0; n < 65; n++)
      statuses.push((await browser.post('/console/link', { token: `guess-${n}` })).status);

    expect(statuses.filter((status) => status === 403)).to.have.length(60);
    expect(statuses.slice(60)).to.deep.equal(Array(5).fill(429));
    expect(world.audit).to.have.length(60);
  });

  it('work despite guesses from the same address', async () => {
    const token = await world.access.issueLink(undefined);
    for (let n = 0; n < 61; n++) await world.browser().post('/console/link', { token: 'a guess' });

    expect((await world.browser().post('/console/link', { token })).status).to.equal(200);
  });

  it('are valid for five minutes', async () => {
    const token = await world.access.issueLink(undefined);
    world.clock.advance(5 * MINUTE_MS);

    expect((await world.browser().post('/console/link', { token })).status).to.equal(403);
  });

  it("belong to an operator if operators exist, and then the owner's session ends", async () => {
    const [owner, adas] = [world.browser(), world.browser()];
    const [early, late] = [
      await world.access.issueLink(undefined),
      await world.access.issueLink(undefined),
    ];
    await owner.post('/console/link', { token: early });
    expect(await owner.isLoggedIn()).to.equal(true);
    anOperator(world, 'ada');
    const refused = await world.access.issueLink(undefined).catch((error: Error) => error.message);
    await adas.post('/console/link', { token: await world.access.issueLink('ada') });

    expect(refused).to.contain('--as NAME');
    expect(await owner.isLoggedIn()).to.equal(false);
    expect((await world.browser().post('/console/link', { token: late })).status).to.equal(403);
    expect(await adas.isLoggedIn()).to.equal(true);
  });

  it('cannot be the token of a terminal', async () => {
    const token = await world.coordination.issueToken('{"sandbox":"s"}', 30_000, {
      sandbox: 's',
      tenant: { namespace: 'n', team: 't', user: 'u' },
    });

    expect((await world.browser().post('/console/link', { token })).status).to.equal(403);
    expect(await world.coordination.peekToken(token), 'still good').to.not.equal(undefined);
  });
});

describe('users of a provider', () => {
  let world: ConsoleWorld;
  let answers: number;
  let name: string;
  beforeEach(async () => {
    answers = 0;
    name = 'grace';
    world = await aConsole({
      provider: {
        begin: async () => ({
          url: 'https://issuer.example/authorize',
          expected: { state: randomUUID(), nonce: '', verifier: '', redirectUri: '', again: false },
        }),
        finish: async () => {
          answers += 1;
          return {
            identity: 'https://issuer.example#7',
            name,
            role: 'operator',
            users: ['grace'],
            authenticatedAt: undefined,
          };
        },
      },
    });
  });
  afterEach(() => world.stop());

  const begin = async (device?: string) =>
    await world.access.startOpenId({
      redirectUri: '',
      replaces: undefined,
      again: false,
      next: undefined,
      from: { address: '192.0.2.1', device },
    });
  const answer = async (sealed: string) =>
    await world.access.loginByOpenId(sealed, new URL(world.site), {
      requestId: 'r',
      from: { address: '192.0.2.1', device: undefined },
    });

  it('are not blocked by logins from the same address, once their browser is known', async () => {
    const { device = '' } = await answer((await begin()).sealed);
    for (let n = 1; n < 60; n++) await begin();

    expect(await rejection(begin())).to.include({ code: 'RATE_LIMITED' });
    expect(await rejection(begin(`${device}x`))).to.include({ code: 'RATE_LIMITED' });
    expect(await begin(device)).to.have.property('sealed');
  });

  it('are requested from the provider a few times per login', async () => {
    const { sealed } = await begin();
    expect(await answer(sealed)).to.have.property('token');
    // a provider may take a code twice: we don't
    for (let n = 1; n < 5; n++)
      expect(await rejection(answer(sealed))).to.include({ code: 'FORBIDDEN' });
    expect(await world.coordination.consoleSessions()).to.have.length(1);

    expect(await rejection(answer(sealed))).to.include({ code: 'RATE_LIMITED' });
    expect(answers).to.equal(5);
  });

  it('continue to their page, on the console only', async () => {
    for (const [asked, reached] of [
      ['/console/approvals/an-id', '/console/approvals/an-id'],
      ['//evil.example/console', '/console/approvals'],
      ['https://evil.example', '/console/approvals'],
    ] as const) {
      const browser = world.browser();
      const login = await browser.get(`/console/login?next=${encodeURIComponent(asked)}`);
      const [, next = ''] =
        /action="\/console\/openid">\s*<input type="hidden" name="next" value="([^"]+)"/.exec(
          login.text,
        ) ?? [];
      await browser.post('/console/openid', { next: next || asked });
      const entered = await browser.get('/console/openid/callback?code=c&state=s');
      expect(entered.text, asked).to.contain(`0; url=${reached}"`);
      expect(await browser.isLoggedIn()).to.equal(true);
    }
  });

  it('have names that are neither executed nor reversed', async () => {
    name = '<script>alert(1)</script>\u202egnp';
    const browser = world.browser();
    await browser.post('/console/openid', {});
    await browser.get('/console/openid/callback?code=c&state=s');
    for (const path of ['/console/sessions', '/console/login']) {
      const { text } = await browser.get(path);
      expect(text).to.contain('&lt;script&gt;').and.to.contain('[U+202E]');
      expect(text).to.not.match(/<script|\u202e/);
    }
  });

  it('lose their sessions if the provider is removed', async () => {
    const { token } = await answer((await begin()).sealed);

    expect((await world.access.openSession(token))?.person.name).to.equal('grace');
    expect(await world.accessWith(undefined).openSession(token)).to.equal(undefined);
    expect(await world.access.openSession(token), 'for good').to.equal(undefined);
  });
});

describe('login attempts', () => {
  let world: ConsoleWorld;
  beforeEach(async () => {
    world = await aConsole();
    anOperator(world, 'ada');
  });
  afterEach(() => world.stop());

  const from = (address: string, device?: string) => ({
    requestId: 'r',
    from: { address, device },
    replaces: undefined,
  });
  const tryFrom = async (address: string, password: string, device?: string): Promise<string> =>
    await world.access.loginByPassword('ada', password, from(address, device)).then(
      () => 'in',
      (error: Error & { code?: string }) => error.code ?? error.message,
    );

  it('have growing delays per address, without an effect on others', async () => {
    const attempts: string[] = [];
    for (let n = 0; n < 7; n++) attempts.push(await tryFrom('192.0.2.1', `guess ${n}`));

    expect(attempts).to.deep.equal([...Array<string>(6).fill('FORBIDDEN'), 'RATE_LIMITED']);
    expect(await tryFrom('192.0.2.1', PASSWORD), 'even the right one').to.equal('RATE_LIMITED');
    expect(await tryFrom('198.51.100.7', PASSWORD), 'from elsewhere').to.equal('in');
    world.clock.advance(MINUTE_MS);
    for (let n = 0; n < 6; n++) await tryFrom('192.0.2.1', 'wrong');
    world.clock.advance(MINUTE_MS);
    for (let n = 0; n < 6; n++) await tryFrom('192.0.2.1', 'wrong');
    world.clock.advance(MINUTE_MS);
    expect(await tryFrom('192.0.2.1', PASSWORD), 'a longer window').to.equal('RATE_LIMITED');
  });

  it('from many addresses are stopped, except for known browsers', async () => {
    const { device } = await world.access.loginByPassword('ada', PASSWORD, from('203.0.113.1'));
    let guesses = 0;
    for (; guesses < 1_000; guesses++)
      if ((await tryFrom(`10.0.${guesses >> 8}.${guesses & 255}`, 'guess')) === 'RATE_LIMITED')
        break;

    expect(guesses).to.be.within(150, 200);
    expect(await tryFrom('203.0.113.9', PASSWORD)).to.equal('RATE_LIMITED');
    expect(await tryFrom('203.0.113.9', PASSWORD, device)).to.equal('in');
    expect(await tryFrom('203.0.113.9', PASSWORD, `${device}x`)).to.equal('RATE_LIMITED');
  });

  it("of a browser that knew an earlier password count as a stranger's", async () => {
    const { device } = await world.access.loginByPassword('ada', PASSWORD, from('203.0.113.1'));
    world.operators.put({
      name: 'ada',
      role: 'operator',
      passwordHash: '$argon2id$a new password',
      users: [],
      addedAt: '2026-01-02T00:00:00Z',
    });
    for (let n = 0; n < 6; n++) await tryFrom('203.0.113.7', 'guess');

    expect(await tryFrom('203.0.113.7', 'guess', device)).to.equal('RATE_LIMITED');
    expect(await tryFrom('198.51.100.1', 'a new password')).to.equal('in');
  });

  it('of one browser count together, however it spells its mark', async () => {
    const { device } = await world.access.loginByPassword('ada', PASSWORD, from('203.0.113.1'));
    const attempts: string[] = [];
    for (let n = 0; n < 7; n++)
      attempts.push(await tryFrom('203.0.113.1', `guess ${n}`, `${device}.${n}`));

    expect(attempts).to.contain('RATE_LIMITED');
  });

  it('are not forgotten in a flood of other names', async () => {
    for (let n = 0; n < 200; n++) await tryFrom(`10.1.0.${n}`, 'guess');
    for (let n = 0; n < 11_000; n++)
      await world.access
        .loginByPassword(`made-up-${n}`, 'x', from(`10.${n >> 8}.2.${n & 255}`))
        .catch(() => undefined);

    expect(await tryFrom('10.2.0.1', 'guess')).to.equal('RATE_LIMITED');
  });

  it('are not used up by images and forms of other sites', async () => {
    const browser = world.browser();
    for (let n = 0; n < 20; n++) {
      await browser.get('/console/login?name=ada&password=x', { 'Sec-Fetch-Site': 'cross-site' });
      await browser.post(
        '/console/login',
        { name: 'ada', password: 'x' },
        { Origin: 'https://evil.example' },
      );
    }

    expect((await browser.logIn('ada')).status).to.equal(200);
  });
});
