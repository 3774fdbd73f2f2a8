import { expect } from 'chai';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aStubServer, type StubServer } from './client-support.ts';

const collected = async <T>(source: Promise<AsyncIterable<T>>): Promise<readonly T[]> => {
  const all: T[] = [];
  for await (const one of await source) all.push(one);
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

  it('return each line of a log, what is missing, and the end', async () => {
    answer(
      'retry: 1000\n\n:\n\nevent: reset\ndata: {"sandboxId":"s"}\n\nid: 7\ndata: {"line":"a\\r","timestamp":"T"}\n\nid: 9\ndata: {"line":"b","partial":true}\n\nevent: end\ndata: {"sandboxId":"s"}\n\n',
    );
    expect(
      await collected(
        client.stream('getSandboxLogs', {
          params: { sandboxId: 's' },
          query: { tailLines: 5, follow: true },
          lastEventId: '4',
        }),
      ),
    ).to.deep.equal([
      { type: 'reset', id: '', data: { sandboxId: 's' } },
      { type: 'message', id: '7', data: { line: 'a\r', timestamp: 'T' } },
      { type: 'message', id: '9', data: { line: 'b', partial: true } },
      { type: 'end', id: '', data: { sandboxId: 's' } },
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

  it('return each event', async () => {
    answer(
      [
        'event: begin\nid: 2\ndata: {}\n\nid: 3\ndata: {"reason":"Claimed"}\n\n',
        'event: reset\ndata: {}\n\nevent: of-a-later-version\ndata: {}\n\n',
        'event: cluster\ndata: {"clusterID":"west","incomplete":true}\n\n',
      ].join(''),
    );
    const query = { all: true, begin: true };
    expect(await collected(client.stream('followEvents', { query }))).to.deep.equal([
      { type: 'begin', id: '2', data: {} },
      { type: 'message', id: '3', data: { reason: 'Claimed' } },
      { type: 'reset', id: '', data: {} },
      { type: 'of-a-later-version', id: '', data: {} },
      { type: 'cluster', id: '', data: { clusterID: 'west', incomplete: true } },
    ]);
    expect(server.seen[0]?.url).to.equal('/events?all=true&begin=true');
  });

  it('reject if the service refuses or does not answer', async () => {
    server.answer = () => ({
      status: 429,
      headers: { 'retry-after': '5' },
      body: { error: 'many', errorCode: 'TOO_MANY_STREAMS' },
    });
    expect(await rejection(client.stream('followEvents')))
      .to.be.instanceOf(ApiError)
      .and.include({ status: 429, errorCode: 'TOO_MANY_STREAMS', retryAfter: 5 });
    server.answer = () => undefined;
    const hasty = new SandpoolClient({ server: server.url, apiKey: 'k', deadlineMs: 50 });
    const silent = await rejection(hasty.stream('followEvents'));
    hasty.close();
    expect(silent).to.be.instanceOf(ConnectionFailed).and.include({ code: 'DEADLINE' });
  });

  it('end at an abort, with its reason', async () => {
    server.answer = () => undefined;
    const controller = new AbortController();
    const following = rejection(client.stream('followEvents', { signal: controller.signal }));
    controller.abort(new Error('enough'));
    expect(await following)
      .to.be.instanceOf(Error)
      .and.include({ message: 'enough' });
  });

  it('request logs and events', async () => {
    await client.call('getSandboxLogs', { params: { sandboxId: 's' }, query: { sinceSeconds: 5 } });
    await client.call('listSandboxEvents', { params: { sandboxId: 's' } });
    expect(server.seen.map(({ url }) => url)).to.deep.equal([
      '/sandboxes/s/logs?sinceSeconds=5',
      '/sandboxes/s/events',
    ]);
  });
});
