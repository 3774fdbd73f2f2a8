import { expect } from 'chai';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { visible } from '../../src/http/console/html.ts';
import { OpenIdProvider } from '../../src/services/identity/openid-provider.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { aChromium, noChromium } from '../support/harness/a-chromium.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { aProvider, type RunningProvider } from '../support/openid/a-provider.ts';
import { approvalIdOf } from './an-approving-server.ts';
import { aConsole, anOperator, PASSWORD, type ConsoleWorld } from './console-support.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const SESSION = '__Host-sandpool-session';

describe('the console in Chromium', function () {
  let chromium: Browser;
  let provider: RunningProvider;
  let world: ConsoleWorld;
  let context: BrowserContext;
  let page: Page;
  const complaints: string[] = [];

  before(async function () {
    if (noChromium !== undefined) skipBecause(this, noChromium);
    [chromium, provider] = await Promise.all([aChromium(), aProvider()]);
    const client = {
      issuer: provider.issuer,
      clientId: 'sandpool',
      clientSecret: 'secret of the client',
      scopes: ['openid', 'profile'],
      roleClaim: 'groups',
      roles: { viewer: [], operator: ['platform'], admin: [] },
      userClaim: 'preferred_username',
    };
    world = await aConsole({
      provider: new OpenIdProvider(client, quietLog),
      approvals: ['require operation=createPool'],
    });
    await provider.serve(`${world.site}/console/openid/callback`);
  });
  after(async () => {
    await world?.stop();
    await provider?.stop();
    await chromium?.close();
  });
  beforeEach(async () => {
    complaints.length = 0;
    context = await chromium.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(NEVER_COMES_MS);
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
  });
  afterEach(() => context.close());

  const cookie = async (name = SESSION) =>
    (await context.cookies(world.site)).find((each) => each.name === name);
  const home = () => page.waitForSelector('h1:text("Approvals")');
  const atProvider = async (name: string) => {
    await page.goto(`${world.site}/console/login`);
    await page.click('button:text("identity provider")');
    await page.fill('input[name=login]', name);
    await page.fill('input[name=password]', 'anything');
    await page.click('button[type=submit]');
    await page.waitForSelector('h1:text("Authorize")');
    const carried = await cookie('__Host-sandpool-openid');
    await page.click('button[type=submit]');
    return carried;
  };

  it('logs in with a password, and out, by forms only', async () => {
    anOperator(world, 'ada');
    await page.goto(`${world.site}/console`);
    await page.fill('input[name=name]', 'ada');
    await page.fill('input[name=password]', PASSWORD);
    await page.click('button:text("Log in")');
    await home();
    const kept = await cookie();
    await page.click('button:text-is("Log out")');
    await page.waitForSelector('h1:text("Log in")');

    expect(kept).to.include({ httpOnly: true, secure: true, sameSite: 'Strict', path: '/' });
    expect(await cookie()).to.equal(undefined);
    expect(complaints).to.deep.equal([]);
    world.operators.remove('ada');
  });

  it('decides a request by forms only, whatever the request contains', async () => {
    const nasty = '<img src=x onerror="location=1"></pre><script>location="/x"</script>\u202e';
    const ask = () =>
      world.server.tenant.post('/sandboxpools', { name: 'p', annotations: { a: nasty } });
    const id = approvalIdOf(await ask());
    const token = await world.access.issueLink(undefined);
    await page.goto(`${world.site}/console/link?token=${token}`);
    await page.click('button:text("Log in")');
    await home();
    await page.click('a:text-is("createPool")');
    await page.waitForSelector('h1:text-is("Approval")');
    const shown = await page.textContent('pre.given >> nth=1');
    await page.click('button:text-is("Approve")');
    await page.waitForSelector('span:text-is("approved")');

    expect(shown).to.equal(visible(JSON.stringify({ name: 'p', annotations: { a: nasty } })));
    expect(await page.locator('main img, main script').count()).to.equal(0);
    expect(page.url()).to.equal(`${world.site}/console/approvals/${id}`);
    expect(complaints).to.deep.equal([]);
  });

  it('logs in by a link, and continues to the requested page', async () => {
    const token = await world.access.issueLink(undefined);
    await page.goto(`${world.site}/console/link?token=${token}`);
    await page.click('button:text("Log in")');
    await home();

    expect(await cookie()).to.not.equal(undefined);
    expect(complaints).to.deep.equal([]);
  });

  it("shows the session to a person sent there by another site's page", async () => {
    const token = await world.access.issueLink(undefined);
    await page.goto(`${world.site}/console/link?token=${token}`);
    await page.click('button:text("Log in")');
    await home();
    await page.goto(`${provider.issuer}/.well-known/openid-configuration`);
    await page.evaluate(`location.href = '${world.site}/console/sessions'`);

    await page.waitForSelector('h1:text("Sessions")');
  });

  it("logs in a provider's user, and ends that session at the next login", async () => {
    await atProvider('grace');
    await home();
    const first = await cookie();
    await page.goto(`${world.site}/console/sessions`);
    expect(await page.textContent('main')).to.contain(`${provider.issuer}#grace`);
    await page.goto(`${world.site}/console/login`);
    await page.click('button:text("identity provider")');
    await page.waitForSelector('input[name=login]'); // asked anew, whatever session is there
    await page.fill('input[name=login]', 'grace');
    await page.fill('input[name=password]', 'anything');
    await page.click('button[type=submit]');
    await home();
    const second = await cookie();

    expect(second?.value).to.not.equal(first?.value);
    expect(await world.access.openSession(first?.value ?? '')).to.equal(undefined);
    expect(await world.access.openSession(second?.value ?? '')).to.not.equal(undefined);
    world.operators.lock(`${provider.issuer}#grace`);
    await page.reload();
    await page.waitForSelector('h1:text("Log in")');
    world.operators.unlock(`${provider.issuer}#grace`);
  });

  it('returns to the pending request after another login', async () => {
    await atProvider('grace');
    await home();
    world.clock.advance(15 * 60_000 + 1);
    const id = approvalIdOf(await world.server.tenant.post('/sandboxpools', { name: 'again' }));
    const at = `${world.site}/console/approvals/${id}`;
    await page.goto(at);
    await page.click('a:text("Log in again")');
    await page.click('button:text("identity provider")');
    await page.fill('input[name=login]', 'grace');
    await page.fill('input[name=password]', 'anything');
    await page.click('button[type=submit]');
    await page.waitForSelector('h1:text-is("Approval")');

    expect(page.url()).to.equal(at);
  });

  it('refuses a code twice or in another browser, and a user without a role', async () => {
    let callback = '';
    page.on('request', (request) => {
      if (request.url().includes('/openid/callback')) callback = request.url();
    });
    const carried = await atProvider('heidi');
    await home();
    expect(carried).to.include({ httpOnly: true, secure: true, sameSite: 'Lax' });
    const again = world.browser();
    again.cookies.set('__Host-sandpool-openid', carried?.value ?? '');
    const path = callback.slice(world.site.length);

    expect((await again.get(path)).status, 'a code twice').to.equal(403);
    expect((await world.browser().get(path)).status, 'another browser').to.equal(403);
    await context.clearCookies();
    await atProvider('visitor');
    await page.waitForSelector('h1:text("This did not work")');
    expect(await cookie()).to.equal(undefined);
  });
});
