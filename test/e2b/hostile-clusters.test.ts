import { expect } from 'chai';
import { createServer } from 'node:http';
import { tokenOf } from '../../src/http/e2b/control/schema.ts';
import { compatibleClient, type HttpClient } from '../support/harness/http-client.ts';
import { aCompatibleFleet, type CompatibleFleet } from './a-compatible-fleet.ts';

const ID = '0190d4a57b1e7c3a9f00000000000001';
const STARTED = '2026-04-01T12:00:00.000Z';
const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);
const ITEM = { sandboxID: ID, templateID: 'p', startedAt: STARTED };

describe('lists of sandboxes over clusters with a hostile one', () => {
  let fleet: CompatibleFleet;
  let client: HttpClient;
  let answer: (url: string) => { readonly body: unknown; readonly next?: string };
  const evil = createServer((request, response) => {
    const { body, next } = answer(request.url ?? '');
    response.writeHead(200, {
      'content-type': 'application/json',
      ...(next === undefined ? {} : { 'x-next-token': next }),
    });
    response.end(JSON.stringify(body).replace('"nested"', DEEP));
  });

  before(async () => {
    fleet = await aCompatibleFleet(['w1']);
    client = compatibleClient(Number(new URL(fleet.manager.url).port), fleet.manager.keys.tenant);
    await fleet.join({
      clusterId: 'evil',
      serve: (connection) => {
        connection.on('error', () => undefined);
        evil.emit('connection', connection);
      },
    });
    await client.post('/v2/sandboxes', { templateID: 'default' });
    await client.post('/v2/sandboxes', { templateID: 'w1::default' });
  });
  after(async () => {
    client.close();
    await fleet.stop();
  });

  for (const [title, item] of Object.entries({
    'an id of another cluster': { ...ITEM, sandboxID: `${ID}x` },
    'a sandbox of before 1970': { ...ITEM, startedAt: '1969-12-31T23:59:59.999Z' },
    'a sandbox of a moment that has no place': { ...ITEM, startedAt: '+100000-01-01T00:00:00Z' },
    'a template that is no text': { ...ITEM, templateID: { toString: 1, valueOf: 1 } },
    'nothing at all': null,
    'what is nested without end': { ...ITEM, metadata: 'nested' },
  }))
    it(`omit the cluster if it lists ${title}`, async () => {
      answer = () => ({ body: [item] });
      const { status, json, headers, text } = await client.get('/v2/sandboxes');

      expect(status, text).to.equal(200);
      expect(json).to.have.length(2);
      expect(headers['warning']).to.include('evil').and.not.include('w1');
    });

  it('continue, however many earlier sandboxes it reports', async () => {
    const next = tokenOf({
      claimedAt: Date.parse(STARTED),
      id: '0190d4a5-7b1e-7c3a-9f00-000000000001',
      offset: 999_999_999,
    });
    const later = ['2', '1'].map((digit) => ({
      ...ITEM,
      sandboxID: ID.replace(/1$/, digit),
      startedAt: '2026-03-31T12:00:00.000Z',
    }));
    answer = (url) => (url.includes('nextToken') ? { body: later } : { body: [ITEM], next });
    let token: unknown = '';
    for (let pages = 0; pages < 4; pages += 1) {
      const query = token === '' ? '' : `&nextToken=${String(token)}`;
      const { status, text, headers } = await client.get(`/v2/sandboxes?limit=1${query}`);
      expect(status, text).to.equal(200);
      token = headers['x-next-token'];
    }
  });

  it('omit the cluster if its list continues without end or content', async () => {
    let asked = 0;
    answer = () => {
      asked += 1;
      const id = `0190d4a5-7b1e-7c3a-9f00-${String(900_000_000_000 - asked)}`;
      return { body: [], next: tokenOf({ claimedAt: 9_999_999_999_999 - asked, id, offset: 0 }) };
    };
    const { status, json, headers, text } = await client.get('/v2/sandboxes');

    expect(status, text).to.equal(200);
    expect(json).to.have.length(2);
    expect(headers['warning']).to.include('evil').and.not.include('w1');
    expect(headers).not.to.have.property('x-next-token');
    expect(asked).to.equal(4);
  });

  it('by its pool are refused if it lists something other than sandboxes', async () => {
    answer = () => ({ body: [null] });

    expect((await client.get('/v2/sandboxes?template=evil::x')).status).to.equal(503);
  });
});
