import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { v7 } from 'uuid';
import { aServer, type TestServer } from './a-server.ts';

const TIME = '2026-01-31T12:00:00.000000000Z';

describe('GET /sandboxes/{sandboxId}/logs', () => {
  let server: TestServer;
  let id: string;
  const readers: EventReader[] = [];
  const print = (text: string): void => server.operations.driver.logged.print(id, text, TIME);
  const follow = async (
    query = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<EventReader> => {
    const reader = await EventReader.open(
      server.port,
      `/sandboxes/${id}/logs?follow=true${query}`,
      { 'SERVICE-API-KEY': server.tenant.key ?? '', ...headers },
    );
    readers.push(reader);
    return reader.read();
  };

  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(2);
    id = (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;
  });
  afterEach(async () => {
    for (const reader of readers.splice(0)) reader.close();
    await server.stop();
  });

  it('returns the output', async () => {
    print('one\ntwo\n');
    const { status, json } = await server.tenant.get(`/sandboxes/${id}/logs`);
    expect(status).to.equal(200);
    expect(json).to.deep.equal({
      sandboxId: id,
      podName: `sb-${id}`,
      container: 'main',
      logs: 'one\ntwo\n',
      truncated: false,
    });
  });

  it('returns the last lines with times, and reports that there are more', async () => {
    print('one\ntwo\nthree\n');
    const { json } = await server.tenant.get(`/sandboxes/${id}/logs?tailLines=2&timestamps=true`);
    expect(json).to.deep.include({ logs: `${TIME} two\n${TIME} three\n`, truncated: true });
  });

  it('returns nothing older than sinceSeconds', async () => {
    print('old\n');
    const { clock } = server.operations;
    clock.advance(Date.parse(TIME) + 60_000 - clock.now());
    expect((await server.tenant.get(`/sandboxes/${id}/logs?sinceSeconds=59`)).json).to.deep.include(
      { logs: '', truncated: false },
    );
    expect((await server.tenant.get(`/sandboxes/${id}/logs?sinceSeconds=61`)).json).to.deep.include(
      { logs: 'old\n' },
    );
  });

  it('returns plain text on request, never as a page', async () => {
    print('<script>\nhalf');
    const { status, headers, text } = await server.tenant.get(`/sandboxes/${id}/logs`, {
      headers: { Accept: 'text/plain' },
    });
    expect({ status, text }).to.deep.equal({ status: 200, text: '<script>\nhalf' });
    expect(headers['content-type']).to.equal('text/plain; charset=utf-8');
    expect(headers['x-content-type-options']).to.equal('nosniff');
    expect(
      (await server.tenant.get(`/sandboxes/${id}/logs`, { headers: { Accept: '*/*' } })).headers[
        'content-type'
      ],
    ).to.equal('application/json; charset=utf-8');
  });

  for (const [query, field] of [
    ['tailLines=0', 'tailLines'],
    ['tailLines=10001', 'tailLines'],
    ['tailLines=-1', 'tailLines'],
    ['tailLines=x', 'tailLines'],
    ['sinceSeconds=1.5', 'sinceSeconds'],
    ['follow=maybe', 'follow'],
    ['timestamps=1', 'timestamps'],
    ['container=A', 'container'],
    ['tailLines=1&tailLines=2', 'tailLines'],
  ] as const) {
    it(`refuses ${query}`, async () => {
      const { status, json } = await server.tenant.get(`/sandboxes/${id}/logs?${query}`);
      expect(status).to.equal(400);
      expect(json.errorCode).to.equal('INVALID_ARGUMENT');
      expect(json.detail?.['field']).to.equal(field);
    });
  }

  it("hides other tenants' logs", async () => {
    for (const client of [server.colleague, server.stranger, server.admin]) {
      expect((await client.get(`/sandboxes/${id}/logs`)).json.errorCode).to.equal(
        'SANDBOX_NOT_FOUND',
      );
      expect((await client.get(`/sandboxes/${id}/logs?follow=true`)).json.errorCode).to.equal(
        'SANDBOX_NOT_FOUND',
      );
    }
    expect((await server.tenant.get(`/sandboxes/${v7()}/logs`)).status).to.equal(404);
    expect((await server.anyone.get(`/sandboxes/${id}/logs`)).status).to.equal(401);
  });

  describe('follow', () => {
    it('sends the last lines, then each new one, and the end of the sandbox', async () => {
      print('one\ntwo\n');
      const reader = await follow('&tailLines=1');
      expect(reader.status).to.equal(200);
      expect(reader.headers['content-type']).to.equal('text/event-stream; charset=utf-8');
      expect(reader.headers['cache-control']).to.equal('no-store');
      await reader.until((events) => events.length === 1, 'the last line');

      print('three\n');
      await reader.until((events) => events.length === 2, 'the next line');
      await server.tenant.delete(`/sandboxes/${id}`);
      server.operations.driver.logged.changed();

      const events = await reader.until((all) => all.length === 3, 'the end');
      expect(events).to.deep.equal([
        { id: '2', data: { line: 'two' } },
        { id: '3', data: { line: 'three' } },
        { event: 'end', data: { sandboxId: id } },
      ]);
      await eventually(
        () => reader.ended && server.operations.open.followers === 0,
        'the stream is over',
      );
    });

    it('keeps carriage returns, odd bytes and split characters within their line', async () => {
      print('a\rb\u2028c\n');
      server.operations.driver.logged.print(id, 'x');
      const reader = await follow('&timestamps=true');

      const events = await reader.until((all) => all.length === 2, 'both');

      expect(events.map(({ data }) => data)).to.deep.equal([
        { line: 'a\rb\u2028c', timestamp: TIME },
        { line: 'x', partial: true, timestamp: TIME },
      ]);
    });

    it("resumes after the client's last event", async () => {
      print('one\ntwo\nthree\n');
      const reader = await follow('', { 'Last-Event-ID': '2' });
      expect(await reader.until((all) => all.length === 1, 'the third')).to.deep.equal([
        { id: '3', data: { line: 'three' } },
      ]);
    });

    it('sends reset if the position is no longer stored', async () => {
      print('one\n');
      const reader = await follow('', { 'Last-Event-ID': '77' });
      expect(await reader.until((all) => all.length === 2, 'both')).to.deep.equal([
        { event: 'reset', data: { sandboxId: id } },
        { id: '1', data: { line: 'one' } },
      ]);
    });

    it('closes when the client disconnects', async () => {
      const reader = await follow();
      await eventually(() => server.operations.open.followers === 1, 'it follows');
      reader.close();
      await eventually(() => server.operations.open.followers === 0, 'it lets go');
    });

    it('ends at once when the daemon stops', async () => {
      const reader = await follow();
      await server.stop(60_000);
      await eventually(() => reader.ended, 'the stream is over');
      expect(reader.events).to.deep.equal([]);
    });
  });
});
