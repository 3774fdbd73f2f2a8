import { expect } from 'chai';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { errorCodeIn } from '../../src/fleet/routing/fleet-names.ts';
import { TokenOwners } from '../../src/fleet/routing/pass-on.ts';
import { endpointHeaders } from '../../src/fleet/routing/passed-headers.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('a manager with a hostile worker', () => {
  let servers: FleetOfServers;
  let answer: RequestListener;
  let raw: ((connection: Duplex) => void) | undefined;
  const server: Server = createServer((request, response) => answer(request, response));

  before(async () => {
    servers = await aFleetOfServers(['w1']);
    await servers.fleet.join({
      clusterId: 'evil',
      serve: (connection) => {
        connection.on('error', () => undefined);
        if (raw) raw(connection);
        else server.emit('connection', connection);
      },
    });
  });
  beforeEach(() => {
    raw = undefined;
  });
  after(() => servers.stop());

  /** More deeply than is read of a cluster; a thousand times as deep it could not be written. */
  const NESTED = `{"a":${'['.repeat(300)}${']'.repeat(300)}}`;
  const ID = '0190d4a5-7b1e-7c3a-9f00-000000000001';
  const json =
    (body: unknown): RequestListener =>
    (request, response) => {
      const text = JSON.stringify(body);
      request.resume();
      response.writeHead(200, {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
      });
      response.end(text);
    };
  const unavailable = async (): Promise<void> => {
    const { linkId } = servers.fleet.links.find('evil') ?? {};
    const { status, json: body } = await servers.manager.tenant.get(`/sandboxes/evil.${ID}`);
    expect([status, body.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
    expect(servers.fleet.links.find('evil')?.linkId).to.equal(linkId);
  };

  it('reads a bounded part of an endless header', async () => {
    let written = 0;
    raw = (connection) => {
      connection.write('HTTP/1.1 200 OK\r\n');
      const flood = (): void => {
        while (!connection.destroyed) {
          written += 4_096;
          if (!connection.write(`X-${'a'.repeat(4_092)}: b\r\n`)) break;
        }
        if (!connection.destroyed) connection.once('drain', flood);
      };
      flood();
    };
    await unavailable();
    expect(written).to.be.lessThan(16 << 20);
  });

  it('forwards no invalid answer', async () => {
    for (const text of [
      '',
      'SSH-2.0-x\r\n\r\n',
      'HTTP/1.1 999999 No\r\n\r\n',
      'HTTP/1.1 007 No\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 101 No\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    ]) {
      raw = (connection) => connection.end(text);
      await unavailable();
    }
    raw = (connection) =>
      connection.end(
        'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a":',
      );
    await unavailable();
    raw = (connection) =>
      connection.end(
        'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{"a":',
      );
    await unavailable();
  });

  it('removes headers that affect its own origin or belong to the link', async () => {
    answer = (_request, response) => {
      response.writeHead(200, {
        'Content-Type': 'application/octet-stream',
        'Content-Security-Policy': 'default-src *',
        'Clear-Site-Data': '"*"',
        'Strict-Transport-Security': 'max-age=1',
        'Set-Cookie': 'a=b',
        'Alt-Svc': 'h3=":1"',
        Connection: 'close, X-Of-The-Link',
        'X-Of-The-Link': '1',
        'X-Else': '1',
      });
      response.end('<script>');
    };
    const { tenant } = servers.manager;
    const { status, headers } = await tenant.get(`/sandboxes/evil.${ID}/files?path=/a`);
    expect([status, headers['x-else']]).to.deep.equal([200, '1']);
    expect(headers).not.to.have.any.keys(
      ...['clear-site-data', 'strict-transport-security', 'set-cookie', 'alt-svc'],
      'x-of-the-link',
    );
    expect(headers['content-security-policy']).to.match(/^sandbox /);
  });

  it('redirects no client elsewhere with its key', async () => {
    const { tenant } = servers.manager;
    const asked: [string, () => ReturnType<typeof tenant.get>][] = [
      ['a view', () => tenant.get(`/sandboxes/evil.${ID}`)],
      ['a file', () => tenant.get(`/sandboxes/evil.${ID}/files?path=/a`)],
      ['a command', () => tenant.post(`/sandboxes/evil.${ID}/exec`, { command: ['true'] })],
      ['a claim', () => tenant.post('/sandboxes', { poolName: 'evil::shells' })],
    ];
    for (const status of [301, 307, 308, 399]) {
      answer = (request, response) => {
        request.resume();
        response.writeHead(status, { Location: 'https://evil.example/', 'Content-Length': 0 });
        response.end();
      };
      for (const [what, ask] of asked) {
        const { status: given, json: body, headers } = await ask();
        expect([what, given, body.errorCode]).to.deep.equal([what, 503, 'CLUSTER_UNAVAILABLE']);
        expect(headers).not.to.have.property('location');
      }
    }
    answer = (request, response) => {
      request.resume();
      response.writeHead(200, {
        'Content-Type': 'application/octet-stream',
        Location: 'https://evil.example/',
        'Content-Location': 'https://evil.example/',
        Refresh: '0; url=https://evil.example/',
        'Access-Control-Allow-Origin': '*',
        'WWW-Authenticate': 'Basic',
        'Sandpool-Cluster': 'w1',
        'Sandpool-Link': 'another',
      });
      response.end();
    };
    const { headers } = await tenant.get(`/sandboxes/evil.${ID}/files?path=/a`);
    expect(headers).not.to.have.any.keys(
      ...['location', 'content-location', 'refresh', 'access-control-allow-origin'],
      'www-authenticate',
    );
    expect([headers['sandpool-cluster'], headers['sandpool-link']]).to.deep.equal([
      'evil',
      servers.fleet.links.find('evil')?.linkId,
    ]);
  });

  it('keeps a client of an endpoint within the endpoint', () => {
    const locationOf = (location: string): string | undefined =>
      endpointHeaders({ statusCode: 302, headers: { location } } as IncomingMessage, {
        url: '/v1/sandboxes/evil.x/endpoints/web/a/b?c',
        base: 'https://hub.example:8443',
      })['location'];
    const prefix = '/v1/sandboxes/evil.x/endpoints/web';
    for (const [given, shown] of [
      [`${prefix}/login?next=%2Fa#top`, `${prefix}/login?next=%2Fa#top`],
      [prefix, prefix],
      ['../login', `${prefix}/login`],
      [`http://hub.example:8443${prefix}/`, `${prefix}/`],
    ])
      expect(locationOf(given ?? '')).to.equal(shown);
    for (const elsewhere of [
      ...['https://evil.example/', '//evil.example/', `\\\\evil.example${prefix}/`, 'javascript:1'],
      `https://evil.example${prefix}/`,
      `ftp://hub.example:8443${prefix}/`,
      ...['/sandboxes/w1.y/exec', '../../../../../sandboxes/w1.y', `${prefix}-2/`],
      ...[`${prefix}/../../../w1.y/exec`, `${prefix}/%2e%2e/%2E./x`, `${prefix}\\..\\..\\x`],
      ...['http://', 'http://['],
    ])
      expect([elsewhere, locationOf(elsewhere)]).to.deep.equal([elsewhere, undefined]);
  });

  it('replaces a malformed error code', () => {
    for (const errorCode of ['X'.repeat(1 << 20), 'a\nb', 'lower', 7])
      expect(errorCodeIn({ errorCode })).to.equal(undefined);
    expect(errorCodeIn({ errorCode: 'POOL_NOT_FOUND' })).to.equal('POOL_NOT_FOUND');
  });

  it('stores no malformed tokens, and no more of one worker than its share', async () => {
    for (const token of ['x'.repeat(2_000_000), 'a b', '', 7, undefined]) {
      answer = json({ token });
      const path = `/sandboxes/evil.${ID}/exec-token`;
      const { status, json: body } = await servers.manager.tenant.post(path);
      expect([status, body.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
    }
    const caller = { namespace: 'n', team: 't', user: 'u', role: 'user', keyId: 'k' } as const;
    const owners = new TokenOwners({ now: () => 0, at: () => () => undefined });
    owners.remember('w1', 'good', caller);
    for (let each = 0; each < 30_000; each += 1) owners.remember('evil', `token-${each}`, caller);
    expect(owners.ownerOf('w1', 'good')).to.equal(caller);
    const kept = Array.from({ length: 30_000 }, (_, each) =>
      owners.ownerOf('evil', `token-${each}`),
    );
    expect(kept.filter((owner) => owner).length).to.equal(4_000);
    expect(kept.at(-1)).to.equal(caller);
    const clusters = ['a', 'b', 'c', 'd', 'e'];
    for (const cluster of clusters)
      for (let each = 0; each < 4_000; each += 1) owners.remember(cluster, `${each}`, caller);
    const all = clusters.flatMap((cluster) =>
      Array.from({ length: 4_000 }, (_, each) => owners.ownerOf(cluster, `${each}`) ?? []).flat(),
    );
    const rest = kept.filter((_, each) => owners.ownerOf('evil', `token-${each}`));
    expect(all.length + rest.length + 1).to.equal(20_000);
  });

  it('stops reading an answer with more values than requested', async () => {
    const most = async (path: string, items: number): Promise<number> => {
      let written = 0;
      answer = (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        const flood = (): void => {
          while (!response.destroyed) {
            written += 8_192;
            if (!response.write('[],'.repeat(2_730) + '  ')) break;
          }
          if (!response.destroyed) response.once('drain', flood);
        };
        response.write(`{"items":${JSON.stringify(Array(items).fill({}))},"sandbox":{"pad":[`);
        flood();
      };
      const { status, json: body } = await servers.manager.tenant.get(path);
      expect([status, body.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
      return written;
    };
    // what is under way in the link counts too
    expect(await most(`/sandboxes/evil.${ID}`, 0)).to.be.lessThan(2 << 20);
    expect(await most(`/sandboxes?clusterID=evil&limit=10`, 10)).to.be.lessThan(2 << 20);
  });

  it('refuses a complete answer that is longer than requested', async () => {
    const pad = Array(12_000).fill([]);
    for (const path of [`/sandboxes/evil.${ID}`, '/sandboxes?clusterID=evil&limit=10']) {
      answer = json({ sandbox: { sandboxId: ID }, items: [], pad });
      const { status, json: body } = await servers.manager.tenant.get(path);
      expect([status, body.errorCode], path).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
    }
  });

  it('omits an invalid list, and reports it', async () => {
    const { admin } = servers.manager;
    for (const lie of [
      { items: Array.from({ length: 5_000 }, () => ({})), total: 5_000 },
      { items: 'all', total: 1 },
      { items: [], total: -1.5 },
      { items: [], total: -100_000 },
      { items: [], total: 2 ** 52 },
      { items: [{}, {}], total: 1 },
      ...[null, 7, 'x', []].map((item) => ({ items: [item], total: 1 })),
      ...[[], null, 7],
      { items: [JSON.parse(NESTED)], total: 1 },
    ]) {
      answer = json(lie);
      const list = await admin.get('/sandboxes?all=true');
      expect([lie, list.status, list.json.total]).to.deep.equal([lie, 200, 0]);
      expect([list.status, list.json]).to.have.nested.property('[1].incomplete', true);
      expect(list.headers['warning']).to.include('clusters evil');
    }
  });

  it('reads a bounded part of an endless list', async () => {
    let written = 0;
    answer = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const bytes = Buffer.alloc(65_536, ' ');
      const flood = (): void => {
        while (!response.destroyed) {
          if (written > 128 << 20) return void response.end('{}');
          written += bytes.length;
          if (!response.write(bytes)) break;
        }
        if (!response.destroyed) response.once('drain', flood);
      };
      flood();
    };
    const { json: list } = await servers.manager.admin.get('/sandboxes?all=true');
    expect(list).to.have.property('incomplete', true);
    expect(written).to.be.lessThan(24 << 20); // of 100 items, and what waits in the link
  });

  it('reads a bounded part of an event, and no more of a stream than its client does', async () => {
    const stream =
      (text: string): RequestListener =>
      (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const flood = (): void => {
          while (!response.destroyed) {
            written += text.length;
            if (!response.write(text)) break;
          }
          if (!response.destroyed) response.once('drain', flood);
        };
        flood();
      };
    let written = 0;
    for (const endless of [
      `data: ${'a'.repeat(4_000)}`,
      'data: 7\n\n',
      'data: {\n\n',
      `data: ${NESTED}\n\n`,
    ]) {
      answer = stream(endless);
      const reader = await follow();
      const events = await reader.read().until((all) => all.length > 0, 'it is left');
      expect(events[0]).to.deep.equal({
        event: 'cluster',
        data: { clusterID: 'evil', incomplete: true },
      });
      reader.close();
    }
    written = 0;
    answer = stream(`id: 1\r\nid: x y\ndata: {"poolName":"${'p'.repeat(4_000)}"}\n\n`);
    const unread = await follow();
    let seen = 0;
    const hasStopped = (): boolean => {
      const before = seen;
      seen = written;
      return before > 0 && before === written;
    };
    await eventually(hasStopped, 'it waits for its client');
    expect(written).to.be.lessThan(64 << 20);
    const other = await follow(); // has its turn meanwhile
    const [first] = await other.read().until((all) => all.length > 0, 'an event');
    expect(first?.data).to.include({ clusterID: 'evil' });
    expect(first?.data['poolName']).to.match(/^evil::p/);
    other.close();
    unread.close();
  });

  const follow = (): Promise<EventReader> =>
    EventReader.open(servers.manager.port, '/events', {
      'SERVICE-API-KEY': servers.manager.tenant.key ?? '',
    });

  it("shows the worker's data under the worker's name only", async () => {
    answer = json({
      sandboxId: `w1.${ID}`,
      namespace: 'team-blue',
      poolName: 'w1::shells',
      podName: 'sb-x',
      status: 'Stopping',
    });
    const { json: shown } = await servers.manager.tenant.delete(`/sandboxes/evil.${ID}`);
    expect(shown).to.include({ sandboxId: `evil.w1.${ID}`, poolName: 'evil::w1::shells' });
  });

  it("prefixes the worker's name, whatever length and type the answer declares", async () => {
    const { tenant } = servers.manager;
    const said = (headers: OutgoingHttpHeaders, body: object | string, status = 200): void => {
      answer = (request, response) => {
        request.resume();
        response.writeHead(status, headers);
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      };
    };
    const { tenant: own } = servers.workers['w1']!;
    await own.post('/sandboxpools', { name: 'shells', templateName: 'default', replicas: 1 });
    const { json: claim } = await own.post('/sandboxes', { poolName: 'shells' });
    const shown = {
      sandboxId: `evil.w1.${claim.sandbox?.['sandboxId'] as string}`,
      poolName: 'evil::w1::shells',
    };
    const { json: w1 } = await own.get('/sandboxes?poolName=w1::shells');
    const item = { ...w1.items?.[0], metadata: { m: 'x'.repeat(4_000) } };
    const asW1 = JSON.stringify(claim)
      .replace('"sandboxId":"', '$&w1.')
      .replace('"shells"', '"w1::shells"');
    said({ 'Content-Type': 'application/json' }, asW1, 201);
    const taken = await tenant.post('/sandboxes', { poolName: 'evil::shells' });
    expect(taken.json.sandbox).to.include(shown);

    const items = Array.from({ length: 300 }, () => item);
    const list = { items, total: 300, limit: 300, offset: 0 };
    said({ 'Content-Type': 'application/json; charset=utf-8' }, list);
    const { text } = await tenant.get('/sandboxes?poolName=evil::shells&limit=300');
    expect(text.match(/"sandboxId":"evil\./g)).to.have.length(300);

    for (const type of ['text/json', 'text/html', 'application/octet-stream', undefined]) {
      said(type === undefined ? {} : { 'Content-Type': type }, claim);
      await unavailable();
    }
    for (const body of ['7', 'null', '[{}]', '{']) {
      said({ 'Content-Type': 'application/json' }, body);
      await unavailable();
    }
    said({ 'Content-Type': 'application/json' }, ' '.repeat(3 << 20));
    expect((await tenant.post('/sandboxes', { poolName: 'evil::shells' })).status).to.equal(503);
    said({ 'Content-Type': 'text/plain' }, 'as it was printed');
    const log = await tenant.get(`/sandboxes/evil.${ID}/logs`, {
      headers: { Accept: 'text/plain' },
    });
    expect(log.text).to.equal('as it was printed');
  });
});
