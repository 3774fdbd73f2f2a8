import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import type { ApprovalGate } from '../../src/services/approvals/approval-gate.ts';
import { mayConcern, type PolicyRule } from '../../src/model/approvals/policy.ts';
import { rulesOf } from '../http/an-approving-server.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { aCompatibleFleet } from './a-compatible-fleet.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

type Headers = Readonly<Record<string, string | undefined>>;

describe('ports of sandboxes', () => {
  let web: Server;
  let sockets: WebSocketServer;
  let port: string;
  before(async () => {
    web = createServer((asked, answer) => {
      answer.setHeader('Set-Cookie', ['a=1; Domain=sandbox.test', 'b=2; Path=/; HttpOnly']);
      answer.end(JSON.stringify(asked.headers));
    }).listen(0, '127.0.0.1');
    sockets = new WebSocketServer({ server: web });
    sockets.on('connection', (socket, { headers }) => {
      socket.send(JSON.stringify(headers));
      socket.on('message', (data) => socket.send(data, { binary: false }));
    });
    await once(web, 'listening');
    port = String((web.address() as AddressInfo).port);
  });
  after(() => {
    sockets.close();
    web.close();
  });

  type Api = Pick<CompatibleApi, 'url' | 'keys' | 'operations' | 'stop'>;
  const onAnApi = (start: () => Promise<Api>) => {
    let api: Api;
    let sandbox: Readonly<Record<string, string>>;
    before(async () => {
      api = await start();
      sandbox = await ((await fetch(`${api.url}/v2/sandboxes`, {
        method: 'POST',
        headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
        body: JSON.stringify({ templateID: 'base' }),
      }).then((answer) => answer.json())) as Promise<Record<string, string>>);
    });
    after(() => api.stop());
    const withId = (headers: Headers): Record<string, string> => {
      const given = Object.entries({ 'E2b-Sandbox-Id': sandbox['sandboxID'], ...headers }).flatMap(
        ([name, value]) => (value === undefined ? [] : [[name, value]]),
      );
      return Object.fromEntries(given) as Record<string, string>;
    };
    const ask = async (headers: Headers): Promise<IncomingMessage> => {
      const asked = request(new URL('/', api.url), { headers: withId(headers) }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer;
    };
    const statusFor = async (headers: Headers): Promise<number | undefined> =>
      (await ask(headers)).resume().statusCode;
    /** What comes back over a WebSocket, on which one word is said; or why there is none. */
    const overSocket = async (headers: Headers): Promise<readonly string[]> => {
      const socket = new WebSocket(api.url.replace('http', 'ws'), { headers: withId(headers) });
      const heard: string[] = [];
      const signal = AbortSignal.timeout(NEVER_COMES_MS);
      socket.on('message', (data: Buffer) => void heard.push(String(data)));
      try {
        await once(socket, 'open', { signal });
        socket.send('hé');
        while (heard.length < 2) await once(socket, 'message', { signal });
      } catch (error) {
        heard.push(String(error));
      } finally {
        socket.terminate();
      }
      return heard;
    };
    /** Resolves once a WebSocket ends for which every key of its tenant was revoked. */
    const endsWithKey = async (headers: Headers): Promise<void> => {
      const socket = new WebSocket(api.url.replace('http', 'ws'), { headers: withId(headers) });
      socket.on('error', () => undefined);
      const signal = AbortSignal.timeout(NEVER_COMES_MS);
      await once(socket, 'message', { signal });
      const closed = once(socket, 'close', { signal });
      const admin = {
        namespace: 'n',
        team: 'ops',
        user: 'root',
        role: 'admin',
        keyId: 'k',
      } as const;
      await api.operations.deleteApiKeysOf(admin, { team: 'blue', user: 'ada', cascade: true });
      await closed;
    };
    return { ask, statusFor, overSocket, endsWithKey, sandbox: () => sandbox };
  };

  const askForToken = (start: Parameters<typeof onAnApi>[0]): void => {
    const { ask, statusFor, overSocket, endsWithKey, sandbox } = onAnApi(start);

    it('are closed without a token', async () => {
      const traffic = sandbox()['trafficAccessToken'];

      expect(await statusFor({ 'E2b-Sandbox-Port': port })).to.equal(401);
      expect(
        await statusFor({ 'E2b-Sandbox-Port': port, 'E2B-Traffic-Access-Token': traffic }),
      ).to.equal(200);
    });

    it('pass WebSockets on, by host or by headers, with the token only', async () => {
      const byHost = {
        'E2b-Sandbox-Id': undefined,
        Host: `${port}-${sandbox()['sandboxID']}.sandbox.test`,
      };
      for (const at of [byHost, { 'E2b-Sandbox-Port': port }]) {
        const [refused] = await overSocket(at);
        const token = { 'E2B-Traffic-Access-Token': sandbox()['trafficAccessToken'] };
        const [headers = '', echo] = await overSocket({ ...at, ...token });

        expect(refused).to.contain('401');
        expect(echo).to.equal('hé');
        expect(JSON.parse(headers)).to.include({ upgrade: 'websocket' });
        expect(headers).to.not.match(/sbt_|spk_|e2b-/);
      }
    });

    it('set no cookies on any host, and receive none', async () => {
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

    it('close, including WebSockets, with the key that claimed their sandbox', () =>
      endsWithKey({
        'E2b-Sandbox-Port': port,
        'E2B-Traffic-Access-Token': sandbox()['trafficAccessToken'],
      }));
  };
  describe('with a token', () => askForToken(aCompatibleApi));
  describe('of another cluster, over its manager', () =>
    askForToken(async () => {
      const { manager, stop } = await aCompatibleFleet(['w1']);
      return { ...manager, stop };
    }));

  describe('under a rule', () => {
    let rules: readonly PolicyRule[] = [];
    const gate = {
      rulesFor: (operation: string, method: string) =>
        rules.filter((rule) => mayConcern(rule, { operation, method })),
    } as unknown as ApprovalGate;
    const { statusFor, overSocket, sandbox } = onAnApi(() =>
      aCompatibleApi({ gate, terms: { openPorts: true } }),
    );
    const statusAt = (at: string): Promise<number | undefined> =>
      statusFor({ 'E2b-Sandbox-Port': at, 'X-Access-Token': sandbox()['envdAccessToken'] });
    afterEach(() => {
      rules = [];
    });

    it('run no code at the port of the interpreter if a rule gates commands', async () => {
      expect(await statusAt('49999'), 'nothing listens there').to.equal(502);
      for (const verdict of ['require', 'deny']) {
        rules = rulesOf(`${verdict} operation=execInSandbox`);
        expect(await statusAt('49999'), verdict).to.equal(403);
        expect(await statusAt(port), verdict).to.equal(200);
      }
    });

    it('cannot be opened by any request or upgrade', async () => {
      rules = rulesOf(`deny path=/sandboxes/*/endpoints/${port}`);
      expect(await statusAt(port)).to.equal(403);
      const token = { 'E2B-Traffic-Access-Token': sandbox()['trafficAccessToken'] };
      const [refused] = await overSocket({ 'E2b-Sandbox-Port': port, ...token });
      expect(refused).to.contain('403');
    });

    it('are closed to a gated key that the request omits', async () => {
      rules = rulesOf('deny operation=openEndpoint key=gated');
      expect(await statusFor({ 'E2b-Sandbox-Port': port })).to.equal(403);
      expect(await statusAt(port), 'an open key').to.equal(200);
    });
  });

  describe('without a token', () => {
    const { statusFor, sandbox } = onAnApi(() => aCompatibleApi({ terms: { openPorts: true } }));

    it('are open to callers who know the id, by host or by header', async () => {
      expect(await statusFor({ 'E2b-Sandbox-Port': port })).to.equal(200);
      expect(
        await statusFor({
          'E2b-Sandbox-Id': undefined,
          Host: `${port}-${sandbox()['sandboxID']}.sandbox.test`,
        }),
      ).to.equal(200);
    });

    it('open neither commands and files nor the interpreter', async () => {
      for (const guarded of ['49983', '49999', undefined])
        expect(await statusFor({ 'E2b-Sandbox-Port': guarded }), guarded).to.equal(401);
    });

    it('refuse a wrong token, and an unknown id', async () => {
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
