import { expect } from 'chai';
import { FakeDebug } from '../support/fakes/fake-debug.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('the debug routes of actors', () => {
  let server: TestServer;
  let debug: FakeDebug;
  beforeEach(async () => {
    debug = new FakeDebug();
    server = await aServer({ operations: Object.assign(anEngine(), debug) });
  });
  afterEach(() => server.stop());

  it('need an admin', async () => {
    for (const path of [
      '/debug/actors',
      '/debug/actors/sandbox/k',
      '/debug/actors/sandbox/k/inspect',
      '/debug/machines/pool',
    ]) {
      expect((await server.tenant.get(path)).json.errorCode, path).to.equal('ADMIN_REQUIRED');
      expect((await server.anyone.get(path)).status, path).to.equal(401);
    }
    expect((await server.tenant.post('/debug/actors/sandbox/k/rebuild')).json.errorCode).to.equal(
      'ADMIN_REQUIRED',
    );
  });

  it('list actors in pages that continue each other', async () => {
    const { status, text } = await server.admin.get(
      '/debug/actors?kind=sandbox&state=idle&pool=shells&limit=7',
    );
    const page = JSON.parse(text) as { readonly next: string };
    await server.admin.get(`/debug/actors?cursor=${page.next}`);

    expect(status).to.equal(200);
    expect(page).to.deep.include({
      items: [
        {
          kind: 'sandbox',
          key: 'k',
          name: 'sb-k',
          state: 'idle.available',
          status: 'Idle',
          since: '1970-01-01T00:00:01.000Z',
        },
      ],
      replica: 'one',
    });
    expect(debug.asked).to.deep.equal([
      { kind: 'sandbox', state: 'idle', pool: 'shells', limit: 7 },
      { limit: 20, after: { kind: 'pool', group: 'g', state: 's', entry: { at: 1, id: 'i' } } },
    ]);
  });

  it('show that a sandbox is paused', async () => {
    const summary = {
      kind: 'sandbox',
      key: 'k',
      name: 'sb-k',
      state: 'running',
      since: 1,
    } as const;
    const items = [{ ...summary, status: 'Running', paused: true }] as const;
    Object.assign(server.operations, { listActors: () => ({ items, replica: 'one' }) });

    const { text } = await server.admin.get('/debug/actors');

    const page = JSON.parse(text) as { readonly items: readonly object[] };
    expect(page.items[0]).to.include({ status: 'Running', paused: true });
  });

  it('refuse an invalid request by its field', async () => {
    for (const [query, field] of [
      ['kind=bird', 'kind'],
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['cursor=x', 'cursor'],
      [`cursor=${Buffer.from('["bird","",""]').toString('base64url')}`, 'cursor'],
      ['state=', 'state'],
    ] as const) {
      const { status, json } = await server.admin.get(`/debug/actors?${query}`);
      expect([status, json.errorCode, json.detail?.['field']], query).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        field,
      ]);
    }
    expect((await server.admin.get('/debug/machines/pool?format=gif')).json.detail).to.deep.include(
      { field: 'format' },
    );
    expect(
      (await server.admin.get('/debug/actors/sandbox/k?replica=..')).json.detail,
    ).to.deep.include({ field: 'replica' });
  });

  it('show an actor with differences in its record', async () => {
    const { status, text } = await server.admin.get('/debug/actors/sandbox/k?replica=two');

    expect(status).to.equal(200);
    expect(JSON.parse(text)).to.deep.equal({
      kind: 'sandbox',
      key: 'k',
      name: 'sb-k',
      state: 'idle.available',
      since: '1970-01-01T00:00:01.000Z',
      status: 'Idle',
      why: ['it is ready'],
      leader: { shard: 3, replica: 'one', epoch: 2 },
      context: { working: 0 },
      deadlines: [{ what: 'the next evaluation', time: '1970-01-01T00:00:03.000Z', inMs: 500 }],
      transitions: [
        {
          number: 1,
          time: '1970-01-01T00:00:01.000Z',
          event: 'FOUND',
          cause: 'the driver reported it',
          to: 'idle.available',
          stoodMs: 0,
        },
      ],
      pending: [{ intent: 'claim', forMs: 5 }],
      record: {
        known: { state: 'idle' },
        stored: { state: 'claimed' },
        differs: [{ field: 'state', actor: 'idle', record: 'claimed' }],
      },
      seenBy: { replica: 'one' },
    });
    expect(debug.asked).to.deep.equal([{ kind: 'sandbox', text: 'k', replica: 'two' }]);
  });

  it('accept names with a slash', async () => {
    await server.admin.get('/debug/actors/pool/team-blue%2Fshells');

    expect(debug.asked).to.deep.equal([{ kind: 'pool', text: 'team-blue/shells' }]);
  });

  it('return 404 for an unknown kind or key', async () => {
    for (const path of [
      '/debug/actors/sandbox/x',
      '/debug/actors/bird/k',
      '/debug/actors/sandbox/x/inspect',
      '/debug/machines/bird',
    ]) {
      const { status, json } = await server.admin.get(path);
      expect([status, json.errorCode], path).to.deep.equal([404, 'NOT_FOUND']);
    }
    expect((await server.admin.post('/debug/actors/sandbox/x/rebuild')).status).to.equal(404);
  });

  it('stream transitions', async () => {
    const reader = (
      await EventReader.open(server.port, '/debug/actors/sandbox/k/inspect', {
        'SERVICE-API-KEY': server.admin.key ?? '',
      })
    ).read();
    await eventually(() => reader.events.length === 4, 'the transition was told');
    reader.close();

    expect(reader.events.slice(0, 2)).to.deep.equal([
      { event: 'seen-by', data: { replica: 'two', note: 'no replica leads it now' } },
      { event: 'reset', data: {} },
    ]);
    expect(reader.events[3]).to.deep.equal({ event: 'end', data: {} });
    expect(reader.events[2]).to.deep.include({
      id: '1',
      data: {
        number: 1,
        time: '1970-01-01T00:00:01.000Z',
        event: 'FOUND',
        cause: 'the driver reported it',
        to: 'idle.available',
        stoodMs: 0,
      },
    });
  });

  it('return state charts as JSON or Mermaid, by Accept or by name', async () => {
    const json = JSON.parse((await server.admin.get('/debug/machines/sandbox')).text) as {
      readonly kind: string;
      readonly states: readonly {
        readonly path: string;
        readonly count: number;
        readonly ways: readonly object[];
      }[];
    };
    expect(json.kind).to.equal('sandbox');
    expect(json.states.find(({ path }) => path === 'idle.available')).to.deep.include({
      count: 1,
      type: 'atomic',
    });
    for (const [query, headers] of [
      ['?format=mermaid', {}],
      ['', { Accept: 'text/vnd.mermaid' }],
    ] as const) {
      const answer = await server.admin.get(`/debug/machines/sandbox${query}`, { headers });
      expect([answer.headers['content-type'], answer.text]).to.deep.equal([
        'text/vnd.mermaid; charset=utf-8',
        'stateDiagram-v2',
      ]);
    }
  });
});
