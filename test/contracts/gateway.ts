import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { connectRaw } from '../support/harness/http-client.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  aGateway,
  ask,
  EndlessAnswer,
  textOf,
  WEB_PORT,
  type EndpointWay,
  type GatewayUnderTest,
} from '../http/gateway-support.ts';

/**
 * What the gateway does with requests to an endpoint, whatever leads there: `way` says by what,
 * anew for each test.
 */
export const gatewaySuite = (connection: string, way: () => EndpointWay): void =>
  void describe(`the gateway to endpoints by ${connection}`, () => {
    let under: GatewayUnderTest;
    beforeEach(async () => {
      under = await aGateway(way());
    });
    afterEach(() => under.stop());

    it("forwards method, path, query and body unchanged, and returns the sandbox's status, headers and body", async () => {
      await under.serve(async (request, response) => {
        const body = await textOf(request);
        response
          .writeHead(207, { 'X-Own': 'of the sandbox', 'Content-Type': 'text/plain' })
          .end(`${request.method} ${request.url} ${body}`);
      });
      const response = await ask(under, '/a/../b%2F?c=d&c=e', {
        method: 'PATCH',
        body: 'the body',
      });
      expect(response.statusCode).to.equal(207);
      expect(response.headers).to.include({
        'x-own': 'of the sandbox',
        'content-type': 'text/plain',
      });
      expect(await textOf(response)).to.equal('PATCH /a/../b%2F?c=d&c=e the body');
    });

    it('forwards an endpoint without a path as /', async () => {
      await under.serve((request, response) => response.end(request.url));
      expect(await textOf(await ask(under, ''))).to.equal('/');
      expect(await textOf(await ask(under, '?a=b'))).to.equal('/?a=b');
    });

    it('works the same under /v1', async () => {
      await under.serve((request, response) =>
        response.end(`${request.url} ${String(request.headers['x-forwarded-prefix'])}`),
      );
      const { text } = await under.tenant.get(`/v1/sandboxes/${under.id}/endpoints/web/x`);
      expect(text).to.equal(`/x /v1/sandboxes/${under.id}/endpoints/web`);
    });

    it('removes the key, cookies, hop-by-hop and proxy headers', async () => {
      await under.serve((request, response) => response.end(JSON.stringify(request.headers)));
      const response = await ask(under, '/', {
        headers: {
          Cookie: 'session=operator',
          Connection: 'close, X-Hop',
          'X-Hop': '1',
          'Keep-Alive': 'timeout=1',
          'Proxy-Authorization': 'Basic eA==',
          Forwarded: 'for=6.6.6.6',
          'X-Forwarded-For': '6.6.6.6',
          'X-Forwarded-User': 'root',
          'X-Real-IP': '6.6.6.6',
          Authorization: 'Bearer own',
          'X-Request-Id': 'asked-1',
        },
      });
      const seen = JSON.parse(await textOf(response)) as Record<string, string>;
      expect(seen).to.include({
        authorization: 'Bearer own',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'http',
        'x-request-id': 'asked-1',
        'x-forwarded-host': `127.0.0.1:${under.port}`,
      });
      expect(seen['host']).to.match(/^localhost:\d+$/);
      expect(seen).to.not.have.any.keys(
        'service-api-key',
        'cookie',
        'x-hop',
        'keep-alive',
        'proxy-authorization',
        'forwarded',
        'x-forwarded-user',
        'x-real-ip',
      );
      expect(JSON.stringify(seen)).to.not.contain(under.key);
    });

    it('removes headers that servers mistake for those of a proxy', async () => {
      await under.serve((request, response) => response.end(JSON.stringify(request.headers)));
      const response = await ask(under, '/', {
        headers: {
          X_Forwarded_For: '6.6.6.6',
          'X-Forwarded_Proto': 'https',
          X_Real_IP: '6.6.6.6',
          Service_Api_Key: 'x',
          X_Own: '1',
        },
      });
      const seen = JSON.parse(await textOf(response)) as Record<string, string>;
      expect(seen).to.include({ 'x-forwarded-for': '127.0.0.1', x_own: '1' });
      expect(seen).to.not.have.any.keys(
        'x_forwarded_for',
        'x-forwarded_proto',
        'x_real_ip',
        'service_api_key',
      );
    });

    it('removes headers that affect its whole origin, and gives pages an origin of their own', async () => {
      await under.serve((_request, response) =>
        response
          .writeHead(200, {
            'Set-Cookie': 'a=b',
            'Clear-Site-Data': '"*"',
            'Alt-Svc': 'h3=":443"',
            'Strict-Transport-Security': 'max-age=1',
            'Service-Worker-Allowed': '/',
            'Content-Security-Policy': "default-src 'self'",
            'X-Request-Id': 'forged',
            Connection: 'X-Hop',
            'X-Hop': '1',
            'X-Kept': '1',
          })
          .end('page'),
      );
      const { headers, statusCode } = await ask(under, '/', {
        headers: { 'X-Request-Id': 'asked-2' },
      });
      expect(statusCode).to.equal(200);
      expect(headers).to.not.have.any.keys(
        'set-cookie',
        'clear-site-data',
        'alt-svc',
        'strict-transport-security',
        'service-worker-allowed',
        'x-hop',
      );
      expect(headers).to.include({ 'x-kept': '1', 'x-request-id': 'asked-2' });
      expect(headers['content-security-policy']).to.equal(
        "default-src 'self', sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
      );
    });

    it('keeps redirects of the sandbox within the endpoint, and leaves others unchanged', async () => {
      await under.serve((request, response) =>
        response
          .writeHead(302, {
            Location: decodeURIComponent(request.url?.slice(4) ?? '').replace(
              'PORT',
              String(WEB_PORT),
            ),
          })
          .end(),
      );
      const location = async (to: string) =>
        (await ask(under, `/?to${encodeURIComponent(to)}`)).headers.location;
      const prefix = `/sandboxes/${under.id}/endpoints/web`;
      expect(await location('/login?a=b')).to.equal(`${prefix}/login?a=b`);
      expect(await location('http://localhost:PORT/login')).to.equal(`${prefix}/login`);
      expect(await location(`${prefix}/login`)).to.equal(`${prefix}/login`);
      expect(await location('login')).to.equal('login');
      expect(await location('https://elsewhere.example/')).to.equal('https://elsewhere.example/');
      expect(await location('//elsewhere.example/')).to.equal('//elsewhere.example/');
    });

    it('streams an answer while the sandbox sends it, headers first', async () => {
      let more: (text: string) => void = () => {};
      await under.serve((_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.flushHeaders();
        more = (text) => void response.write(text);
      });
      const response = await ask(under, '/events');
      more('data: 1\n\n');
      expect(String((await once(response, 'data'))[0])).to.equal('data: 1\n\n');
      more('data: 2\n\n');
      expect(String((await once(response, 'data'))[0])).to.equal('data: 2\n\n');
      response.destroy();
      await eventually(
        () => under.operations.open.endpoints === 0,
        'the way to the endpoint is closed',
      );
    });

    it('forwards bodies far longer than the API accepts, in both directions at once', async () => {
      await under.serve((request, response) => void request.pipe(response));
      const piece = Buffer.alloc(1 << 20, 'a body of many pieces');
      const request = httpRequest({
        host: '127.0.0.1',
        port: under.port,
        method: 'POST',
        path: `/sandboxes/${under.id}/endpoints/web/`,
        headers: { 'SERVICE-API-KEY': under.key },
      });
      const [sent, received] = [createHash('sha256'), createHash('sha256')];
      const answered = once(request, 'response') as Promise<IncomingMessage[]>;
      const sending = (async () => {
        for (let at = 0; at < 24; at += 1) {
          sent.update(piece);
          if (!request.write(piece)) await once(request, 'drain');
        }
        request.end();
      })();
      const [response] = await answered;
      for await (const chunk of response ?? []) received.update(chunk as Buffer);
      await sending;
      expect(received.digest('hex')).to.equal(sent.digest('hex'));
    });

    it('reads no faster than its client does', async () => {
      const answer = new EndlessAnswer();
      await under.serve((_request, response) => {
        answer.give(response);
      });
      const response = await ask(under, '/endless');
      await answer.untilItWaits();
      expect(answer.written).to.be.below(way().mostHeld ?? 32 << 20);
      response.destroy();
    });

    it('forwards trailers, both ways', async () => {
      await under.serve(async (request, response) => {
        await textOf(request);
        response.writeHead(200, { Trailer: 'X-Sum' }).write('body');
        response.addTrailers({
          'X-Sum': String(request.trailers['x-of-client']),
          'Set-Cookie': 'a=b',
        });
        response.end();
      });
      const request = httpRequest({
        host: '127.0.0.1',
        port: under.port,
        method: 'POST',
        path: `/sandboxes/${under.id}/endpoints/web/`,
        headers: {
          'SERVICE-API-KEY': under.key,
          'Transfer-Encoding': 'chunked',
          Trailer: 'X-Of-Client',
        },
      });
      request.write('body');
      request.addTrailers({ 'X-Of-Client': '42' });
      request.end();
      const [response]: IncomingMessage[] = (await once(request, 'response')) as IncomingMessage[];
      if (response) await textOf(response);
      expect(response?.trailers).to.deep.equal({ 'x-sum': '42' });
    });

    it('asks the sandbox before the client sends a body that waits for 100', async () => {
      const upstream = await under.serve(() => {});
      upstream.on('checkContinue', (request: IncomingMessage, response) => {
        if (request.url === '/no') return void response.writeHead(417).end();
        response.writeContinue();
        void textOf(request).then((body) => response.end(body));
      });
      const yes = await connectRaw(under.port);
      const head = (path: string) =>
        `POST /sandboxes/${under.id}/endpoints/web${path} HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n`;
      yes.socket.write(head('/yes'));
      await eventually(() => yes.received().startsWith('HTTP/1.1 100 Continue\r\n\r\n'), 'the 100');
      yes.socket.write('body');
      expect(await yes.closed()).to.match(/HTTP\/1\.1 200 OK[\s\S]*body/);
      const no = await connectRaw(under.port);
      no.socket.write(head('/no'));
      expect(await no.closed()).to.match(/^HTTP\/1\.1 417 /);
    });

    it("closes the sandbox's connection when its client disconnects", async () => {
      let [isThere, left] = [false, false];
      await under.serve((request) => {
        isThere = true;
        request.socket.once('close', () => {
          left = true;
        });
      });
      const request = httpRequest({
        host: '127.0.0.1',
        port: under.port,
        path: `/sandboxes/${under.id}/endpoints/web/`,
        headers: { 'SERVICE-API-KEY': under.key },
      });
      request.on('error', () => {});
      request.end();
      await eventually(
        () => isThere && under.operations.open.endpoints === 1,
        'the sandbox has it',
      );
      request.destroy();
      await eventually(() => left && under.operations.open.endpoints === 0, 'the sandbox sees it');
    });

    it('ends requests in progress when the key is revoked', async () => {
      let left = false;
      await under.serve((request, response) => {
        request.socket.once('close', () => {
          left = true;
        });
        response.write('begun');
      });
      const answer = await ask(under, '/');
      const cut = once(answer, 'error');
      answer.resume();

      expect(
        (await under.tenant.delete(`/api-keys/${under.key.split('_')[1] ?? ''}`)).status,
      ).to.equal(200);

      await cut;
      await eventually(() => left && under.operations.open.endpoints === 0, 'the sandbox sees it');
    });

    it('reuses connections, and retries if the sandbox had just closed one', async () => {
      const sockets = new Set<unknown>();
      const upstream = await under.serve((request, response) => {
        sockets.add(request.socket);
        response.end('ok');
      });
      for (let at = 0; at < 3; at += 1) expect(await textOf(await ask(under, '/'))).to.equal('ok');
      expect(sockets.size).to.equal(1);
      upstream.closeAllConnections();
      expect(await textOf(await ask(under, '/'))).to.equal('ok');
      expect(sockets.size).to.equal(2);
    });

    it('counts as activity', async () => {
      const { clock } = under.operations;
      await under.serve((request, response) => {
        clock.advance(5_000);
        request.pipe(response);
      });
      await textOf(await ask(under, '/', { method: 'POST', body: 'x' }));
      expect(under.operations.sandboxes.get(under.id)?.idleExpiresAt).to.equal(
        clock.now() + 1_800_000,
      );
    });
  });
