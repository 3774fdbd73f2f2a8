import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

type Headers = Readonly<Record<string, string | undefined>>;

describe('ports of sandboxes', () => {
  let web: Server;
  let port: string;
  before(async () => {
    web = createServer((asked, answer) => {
      answer.setHeader('Set-Cookie', ['a=1; Domain=sandbox.test', 'b=2; Path=/; HttpOnly']);
      answer.end(JSON.stringify(asked.headers));
    }).listen(0, '127.0.0.1');
    await once(web, 'listening');
    port = String((web.address() as AddressInfo).port);
  });
  after(() => web.close());

  const onAnApi = (openPorts: boolean) => {
    let api: CompatibleApi;
    let sandbox: Readonly<Record<string, string>>;
    before(async () => {
      api = await aCompatibleApi({ terms: { openPorts } });
      sandbox = await ((await fetch(`${api.url}/v2/sandboxes`, {
        method: 'POST',
        headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
        body: JSON.stringify({ templateID: 'default' }),
      }).then((answer) => answer.json())) as Promise<Record<string, string>>);
    });
    after(() => api.stop());
    const ask = async (headers: Headers): Promise<IncomingMessage> => {
      const given = Object.entries({ 'E2b-Sandbox-Id': sandbox['sandboxID'], ...headers }).flatMap(
        ([name, value]) => (value === undefined ? [] : [[name, value]]),
      );
      const asked = request(new URL('/', api.url), {
        headers: Object.fromEntries(given) as Record<string, string>,
      }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer;
    };
    const statusFor = async (headers: Headers): Promise<number | undefined> =>
      (await ask(headers)).resume().statusCode;
    return { ask, statusFor, sandbox: () => sandbox };
  };

  describe('that ask for a token', () => {
    const { ask, statusFor, sandbox } = onAnApi(false);

    it('are for nobody without it', async () => {
      const traffic = sandbox()['trafficAccessToken'];

      expect(await statusFor({ 'E2b-Sandbox-Port': port })).to.equal(401);
      expect(
        await statusFor({ 'E2b-Sandbox-Port': port, 'E2B-Traffic-Access-Token': traffic }),
      ).to.equal(200);
    });

    it('set no cookie, for no host, and are sent none', async () => {
      const answer = await ask({
        Host: `${port}-${sandbox()['sandboxID']}.sandbox.test`,
        Cookie: 'session=of-another-host',
        'E2B-Traffic-Access-Token': sandbox()['trafficAccessToken'],
      });
      let text = '';
      for await (const chunk of answer.setEncoding('utf8')) text += String(chunk);

      expect(answer.statusCode).to.equal(200);
      expect(answer.headers['set-cookie']).to.equal(undefined);
      expect(JSON.parse(text)).to.not.have.any.keys('cookie', 'e2b-traffic-access-token');
    });
  });

  describe('that are open', () => {
    const { statusFor, sandbox } = onAnApi(true);

    it('are for whoever knows the id, by host or by header', async () => {
      expect(await statusFor({ 'E2b-Sandbox-Port': port })).to.equal(200);
      expect(
        await statusFor({
          'E2b-Sandbox-Id': undefined,
          Host: `${port}-${sandbox()['sandboxID']}.sandbox.test`,
        }),
      ).to.equal(200);
    });

    it('open neither commands and files nor what runs code', async () => {
      for (const guarded of ['49983', '49999', undefined])
        expect(await statusFor({ 'E2b-Sandbox-Port': guarded }), guarded).to.equal(401);
    });

    it('take no token that is wrong, and no id of none', async () => {
      expect(
        await statusFor({ 'E2b-Sandbox-Port': port, 'E2B-Traffic-Access-Token': 'wrong' }),
      ).to.equal(401);
      for (const id of ['0'.repeat(32), 'x', '../'])
        expect(await statusFor({ 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': port }), id).to.equal(
          502,
        );
    });
  });
});
