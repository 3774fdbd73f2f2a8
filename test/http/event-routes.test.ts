import { expect } from 'chai';
import type { EventRecord } from '../../src/model/event.ts';
import { eventually } from '../support/harness/eventually.ts';
import { happens as note } from '../support/harness/engine-operations.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('events over HTTP', () => {
  let server: TestServer;
  let id: string;
  const readers: EventReader[] = [];
  const happens = (part: Partial<EventRecord> & Pick<EventRecord, 'reason'>): void =>
    note(server.operations, {
      at: Date.parse('2026-03-01T12:00:00.000Z'),
      owner: { namespace: 'team-blue', team: 'blue', user: 'ada' },
      poolName: 'shells',
      sandboxId: id,
      ...part,
    } as EventRecord);
  const follow = async (
    key: string | undefined,
    query = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<EventReader> => {
    const reader = await EventReader.open(server.port, `/events${query}`, {
      'SERVICE-API-KEY': key ?? '',
      ...headers,
    });
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

  describe('GET /sandboxpools/{name}/events', () => {
    it('lists the events of a pool', async () => {
      const owner = { namespace: 'team-blue', team: 'blue', user: 'ada' };
      const at = Date.parse('2026-03-01T12:00:00.000Z');
      const base = { at, owner, poolName: 'shells' };
      note(server.operations, { ...base, reason: 'StartFailed', why: 'command not found: x' });
      happens({ reason: 'Claimed' });

      const { status, json } = await server.tenant.get('/sandboxpools/shells/events');

      expect(status).to.equal(200);
      const common = { time: '2026-03-01T12:00:00.000Z', poolName: 'shells', ...owner };
      expect(json).to.deep.equal({
        total: 3,
        items: [
          { ...common, type: 'Normal', reason: 'Created', message: 'pool shells was created' },
          {
            ...common,
            type: 'Normal',
            reason: 'Filled',
            message: 'pool shells has all its 2 instances',
          },
          {
            ...common,
            type: 'Warning',
            reason: 'StartFailed',
            message: 'an instance of pool shells did not start: command not found: x',
          },
        ],
      });
    });

    it("filters by an admin's namespace, and hides other namespaces from others", async () => {
      const asked: unknown[] = [];
      Object.assign(server.operations, {
        poolEvents: async ({ namespace }: { readonly namespace: string }, name: string) => {
          asked.push([namespace, name]);
          return [];
        },
      });
      const byQuery = '/sandboxpools/shells/events?namespace=team-blue';
      const byName = '/sandboxpools/team-blue%2Fshells/events';
      for (const path of [byQuery, byName])
        expect((await server.admin.get(path)).status).to.equal(200);
      expect(asked.splice(0)).to.deep.equal([
        ['team-blue', 'shells'],
        ['team-blue', 'shells'],
      ]);
      expect((await server.stranger.get(byQuery)).json.errorCode).to.equal('ADMIN_REQUIRED');
      expect((await server.stranger.get(byName)).json.errorCode).to.equal('POOL_NOT_FOUND');
      expect(asked).to.deep.equal([]);
    });

    it('returns 404 for a pool without events, and for an impossible name', async () => {
      for (const name of ['nothing', 'No_Name']) {
        const { status, json } = await server.tenant.get(`/sandboxpools/${name}/events`);
        expect([status, json.errorCode], name).to.deep.equal([404, 'POOL_NOT_FOUND']);
      }
    });
  });

  describe('GET /sandboxes/{sandboxId}/events', () => {
    it('lists the events, with the reason of the end', async () => {
      await server.tenant.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '90s' });
      server.operations.driver.end(id, 3);
      await server.operations.settled();

      const { status, json } = await server.tenant.get(`/sandboxes/${id}/events`);

      expect(status).to.equal(200);
      const common = {
        time: '2026-03-01T12:00:00.000Z',
        sandboxId: id,
        poolName: 'shells',
        namespace: 'team-blue',
        team: 'blue',
        user: 'ada',
      };
      expect(json).to.deep.equal({
        total: 5,
        items: [
          { ...common, type: 'Normal', reason: 'Created', message: 'created in pool shells' },
          { ...common, type: 'Normal', reason: 'Started', message: 'its main process is running' },
          { ...common, type: 'Normal', reason: 'Claimed', message: 'claimed by blue/ada' },
          {
            ...common,
            type: 'Normal',
            reason: 'IdleTimeoutChanged',
            message: 'its idle timeout is now 1m30s',
          },
          {
            ...common,
            type: 'Warning',
            reason: 'Completed',
            message: 'it has ended: its main process ended with exit code 3',
            endReason: 'exited',
            exitCode: 3,
          },
        ],
      });
    });
  });

  describe('GET /events', () => {
    it("sends the caller's own events as they happen, and resumes after the client's last one", async () => {
      const reader = await follow(server.tenant.key);
      happens({ reason: 'Claimed' });
      happens({ reason: 'Claimed', owner: { namespace: 'team-red', team: 'red', user: 'eve' } });
      happens({ reason: 'Killing', end: { reason: 'idle-timeout', exitCode: null } });

      const events = await reader.until((all) => all.length === 2, 'both');

      expect(events.map(({ data }) => data['reason'])).to.deep.equal(['Claimed', 'Killing']);
      expect(events[1]?.data).to.include({
        sandboxId: id,
        endReason: 'idle-timeout',
        message: 'it is being ended: it was idle for its idle timeout',
      });
      reader.close();
      happens({ reason: 'Ready' });
      const again = await follow(server.tenant.key, '', { 'Last-Event-ID': events[0]?.id ?? '' });
      expect(
        (await again.until((all) => all.length === 2, 'what was missed')).map(
          ({ data }) => data['reason'],
        ),
      ).to.deep.equal(['Killing', 'Ready']);
    });

    it('sends reset once if missed events are no longer stored', async () => {
      const reader = await follow(server.tenant.key, '', { 'Last-Event-ID': '17' });
      await reader.until((all) => all.length > 0, 'reset');
      happens({ reason: 'Ready' });
      const events = await reader.until(
        (all) => all.at(-1)?.data['reason'] === 'Ready',
        'what happens next',
      );
      expect(events[0]).to.deep.equal({ event: 'reset', data: {} });
      expect(events.filter(({ event }) => event === 'reset')).to.have.length(1);
    });

    it('sends all events to an admin on request, and to nobody else', async () => {
      const reader = await follow(server.admin.key, '?all=true');
      happens({ reason: 'Claimed' });
      await reader.until((all) => all.length === 1, "another's");
      const refused = await server.tenant.get('/events?all=true');
      expect(refused.status).to.equal(403);
      expect(refused.json.errorCode).to.equal('ADMIN_REQUIRED');
    });

    it('closes when the client disconnects, and ends when the daemon stops', async () => {
      const [one, other] = [await follow(server.tenant.key), await follow(server.tenant.key)];
      await eventually(() => server.operations.open.followers === 2, 'both follow');
      one.close();
      await eventually(() => server.operations.open.followers === 1, 'one is gone');
      await server.stop(60_000);
      await eventually(
        () => other.ended && server.operations.open.followers === 0,
        'the other has ended',
      );
    });

    it('answers HEAD without a stream', async () => {
      const { status, headers } = await server.tenant.send('HEAD', '/events');
      expect(status).to.equal(200);
      expect(headers['content-type']).to.equal('text/event-stream; charset=utf-8');
      await eventually(() => server.operations.open.followers === 0, 'nobody follows');
    });
  });
});
