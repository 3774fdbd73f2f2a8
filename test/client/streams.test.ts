import { expect } from 'chai';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aStubServer, type StubServer } from './client-support.ts';

const collected = async <T>(source: AsyncIterable<T>): Promise<readonly T[]> => {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
};

describe('streams of the client', () => {
  let server: StubServer;
  let client: SandpoolClient;
  beforeEach(async () => {
    server = await aStubServer();
    client = new SandpoolClient({ server: server.url, apiKey: 'spk_the_key', deadlineMs: 30_000 });
  });
  afterEach(async () => {
    client.close();
    await server.close();
  });
  const answer = (text: string): void => {
    server.answer = () => ({ headers: { 'content-type': 'text/event-stream' }, text });
  };

  it('gives each line of a log, and tells what is missing and that it is over', async () => {
    answer(
      'retry: 1000\n\n:\n\nevent: reset\ndata: {"sandboxId":"s"}\n\nid: 7\ndata: {"line":"a\\r","timestamp":"T"}\n\nid: 9\ndata: {"line":"b","partial":true}\n\nevent: end\ndata: {"sandboxId":"s"}\n\n',
    );
    expect(
      await collected(client.followLogs('s', { tailLines: 5 }, { lastEventId: '4' })),
    ).to.deep.equal([
      { type: 'reset' },
      { type: 'line', id: '7', line: 'a\r', timestamp: 'T' },
      { type: 'line', id: '9', line: 'b', partial: true },
      { type: 'end' },
    ]);
    expect(server.seen[0]).to.deep.include({
      method: 'GET',
      url: '/sandboxes/s/logs?tailLines=5&follow=true',
    });
    expect(server.seen[0]?.headers).to.include({
      'last-event-id': '4',
      accept: 'text/event-stream',
      'service-api-key': 'spk_the_key',
    });
  });

  it('gives each event', async () => {
    answer(
      [
        'event: begin\nid: 2\ndata: {}\n\nid: 3\ndata: {"reason":"Claimed"}\n\n',
        'event: reset\ndata: {}\n\nevent: of-a-later-version\ndata: {}\n\n',
        'event: cluster\ndata: {"clusterID":"west","incomplete":true}\n\n',
      ].join(''),
    );
    expect(await collected(client.followEvents({ all: true }))).to.deep.equal([
      { type: 'open' },
      { type: 'begin', id: '2' },
      { type: 'event', id: '3', event: { reason: 'Claimed' } },
      { type: 'reset' },
      { type: 'cluster', clusterID: 'west', incomplete: true },
    ]);
    expect(server.seen[0]?.url).to.equal('/events?all=true&begin=true');
  });

  it('rejects where the service says no, or nothing', async () => {
    server.answer = () => ({
      status: 429,
      headers: { 'retry-after': '5' },
      body: { error: 'many', errorCode: 'TOO_MANY_STREAMS' },
    });
    expect(await rejection(collected(client.followEvents())))
      .to.be.instanceOf(ApiError)
      .and.include({ status: 429, errorCode: 'TOO_MANY_STREAMS', retryAfter: 5 });
    server.answer = () => undefined;
    const hasty = new SandpoolClient({ server: server.url, apiKey: 'k', deadlineMs: 50 });
    const silent = await rejection(collected(hasty.followEvents()));
    hasty.close();
    expect(silent).to.be.instanceOf(ConnectionFailed).and.include({ code: 'DEADLINE' });
  });

  it('ends at an abort, with its reason', async () => {
    server.answer = () => undefined;
    const controller = new AbortController();
    const following = rejection(collected(client.followEvents({}, { signal: controller.signal })));
    controller.abort(new Error('enough'));
    expect(await following)
      .to.be.instanceOf(Error)
      .and.include({ message: 'enough' });
  });

  it('asks for logs and events', async () => {
    await client.logs('s', { sinceSeconds: 5 });
    await client.events('s');
    expect(server.seen.map(({ url }) => url)).to.deep.equal([
      '/sandboxes/s/logs?sinceSeconds=5',
      '/sandboxes/s/events',
    ]);
  });
});
