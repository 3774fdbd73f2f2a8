import { expect } from 'chai';
import { Deferred } from '../../src/lib/deferred.ts';
import { eventually } from '../support/harness/eventually.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aServer, type TestServer } from './a-server.ts';

const LINES = 12_000;

describe('event streams', () => {
  let server: TestServer;
  let clock: TestClock;
  let id: string;
  let reader: EventReader;

  beforeEach(async () => {
    clock = new TestClock();
    server = await aServer({ clock });
    await server.makeShells(1);
    id = (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;
  });
  afterEach(async () => {
    reader.close();
    await server.stop();
  });

  const open = async (): Promise<EventReader> =>
    EventReader.open(server.port, `/sandboxes/${id}/logs?follow=true`, {
      'SERVICE-API-KEY': server.tenant.key ?? '',
      'Last-Event-ID': '0',
    });

  /** More than the kernel holds for a client that does not read. */
  const fillItsConnection = async (): Promise<void> => {
    server.operations.driver.logged.print(id, `${'x'.repeat(2_000)}\n`.repeat(LINES));
    const before = clock.waiting;
    reader = await open();
    await eventually(
      () => clock.waiting === before + 2,
      'it waits for the client, and to say that it lives',
    );
  };

  it('send a retry time, and keepalives', async () => {
    reader = (await open()).read();
    await eventually(() => reader.text === 'retry: 1000\n\n', 'it begins');
    clock.advance(15_000);
    clock.advance(15_000);
    await eventually(() => reader.text === 'retry: 1000\n\n:\n\n:\n\n', 'two comments');
  });

  it('end as soon as their key is revoked', async () => {
    reader = (await open()).read();
    await eventually(() => server.operations.open.followers === 1, 'it follows');
    const keyId = (server.tenant.key ?? '').split('_')[1] ?? '';
    expect((await server.tenant.delete(`/api-keys/${keyId}`)).status).to.equal(200);
    await eventually(() => reader.ended && server.operations.open.followers === 0, 'it has ended');
    expect(reader.text).to.equal('retry: 1000\n\n');
  });

  it('close a client that reads nothing for 30 s', async () => {
    await fillItsConnection();
    expect(server.operations.open.followers).to.equal(1);

    clock.advance(30_000);

    await eventually(() => server.operations.open.followers === 0, 'it is cut');
    expect(server.log.some(({ event }) => event === 'event-stream-cut')).to.equal(true);
  });

  it('wait for a slow client', async () => {
    await fillItsConnection();
    clock.advance(29_000);

    reader.read();

    await eventually(() => reader.events.length === LINES, 'all have come');
    expect(server.operations.open.followers).to.equal(1);
  });

  it('end even if they open while the daemon stops', async () => {
    const [asked, goOn] = [new Deferred<void>(), new Deferred<void>()];
    const { followSandboxLogs } = server.operations;
    Object.assign(server.operations, {
      followSandboxLogs: async (...call: Parameters<typeof followSandboxLogs>) => {
        asked.resolve();
        await goOn.promise;
        return await followSandboxLogs(...call);
      },
    });
    const opening = open();
    await asked.promise;
    const stopped = server.stop(20_000);
    goOn.resolve();
    reader = (await opening).read();

    await eventually(() => reader.ended, 'it has ended');
    await stopped;
  });
});
