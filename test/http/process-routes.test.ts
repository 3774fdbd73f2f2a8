import { expect } from 'chai';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('processes over HTTP', () => {
  let server: TestServer;
  let at: string;

  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(2);
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'shells' });
    at = `/sandboxes/${json.sandbox?.sandboxId}/processes`;
  });
  afterEach(async () => {
    await server.stop();
  });

  const headers = () => ({ 'SERVICE-API-KEY': server.tenant.key ?? '' });
  const start = async (body: object): Promise<string> => {
    const { status, json, text } = await server.tenant.post(at, body);
    expect(status, text).to.equal(201);
    return String((json as { process?: { processId?: string } }).process?.processId);
  };

  it('are started once per Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'one' };
    const body = { command: 'sleep 1' };
    const [first, second] = [
      await server.tenant.post(at, body, { headers }),
      await server.tenant.post(at, body, { headers }),
    ];

    expect(second.text).to.equal(first.text);
    expect((await server.tenant.get(at)).json.total).to.equal(1);
  });

  it('accept input, its end and signals, and refuse them afterwards', async () => {
    const cat = await start({ command: 'cat', stdin: true });
    const stdin = `${at}/${cat}/stdin`;
    expect((await server.tenant.post(stdin, { data: 'aGk=', encoding: 'base64' })).status)
      .to //
      .equal(200);
    expect((await server.tenant.post(stdin, { close: true })).status).to.equal(200);
    const late = await server.tenant.post(stdin, { data: 'x' });
    const dead = await server.tenant.post(`${at}/${cat}/signal`, { signal: 'TERM' });

    expect([late.status, late.json.errorCode]).to.deep.equal([409, 'INPUT_CLOSED']);
    expect([dead.status, dead.json.errorCode]).to.deep.equal([409, 'PROCESS_ENDED']);
  });

  it('refuse an invalid body by its field', async () => {
    const sleep = await start({ command: 'sleep 1' });
    for (const [path, body, field] of [
      ['', { command: [] }, 'command'],
      ['', { command: 'true', cwd: 'here' }, 'cwd'],
      ['', { command: 'true', cwd: '/no/such' }, 'cwd'],
      ['', { command: 'true', cols: 20 }, 'cols'],
      ['', { command: 'true', timeoutSeconds: 0 }, 'timeoutSeconds'],
      ['', { command: 'true', tag: 'x'.repeat(129) }, 'tag'],
      [`/${sleep}/signal`, { signal: 'SEGV' }, 'signal'],
      [`/${sleep}/stdin`, {}, 'data'],
      [`/${sleep}/stdin`, { data: '!', encoding: 'base64' }, 'data'],
      [`/${sleep}/stdin`, { data: 'é'.repeat(40_000) }, 'data'],
    ] as const) {
      const { status, json, text } = await server.tenant.post(at + path, body);
      expect([status, json.errorCode], text).to.deep.equal([400, 'INVALID_ARGUMENT']);
      expect(String(json.error), text).to.match(new RegExp(`^${field}`));
    }
  });

  it('are forgotten once deleted, and unknown in other sandboxes and to other tenants', async () => {
    const sleep = await start({ command: 'sleep 1' });
    const foreign = await server.stranger.get(`${at}/${sleep}`);
    const deleted = await server.tenant.delete(`${at}/${sleep}`);
    const again = await server.tenant.delete(`${at}/${sleep}`);

    expect([foreign.status, foreign.json.errorCode]).to.deep.equal([404, 'SANDBOX_NOT_FOUND']);
    expect(deleted.json).to.deep.equal({ processId: sleep, status: 'deleted' });
    expect([again.status, again.json.errorCode]).to.deep.equal([404, 'PROCESS_NOT_FOUND']);
  });

  it('send output as events, text or base64, from any event id', async () => {
    const cat = await start({ command: 'cat', stdin: true });
    const stdin = `${at}/${cat}/stdin`;
    await server.tenant.post(stdin, { data: 'héllo' });
    await server.tenant.post(stdin, { data: '/w==', encoding: 'base64' });
    await server.tenant.post(stdin, { data: 'a\0' });
    await server.tenant.post(stdin, { close: true });
    const events = await wholly(
      await EventReader.open(server.port, `${at}/${cat}/output`, headers()),
    );
    const later = await wholly(
      await EventReader.open(server.port, `${at}/${cat}/output?from=1`, headers()),
    );
    const inBase64 = await wholly(
      await EventReader.open(server.port, `${at}/${cat}/output?encoding=base64`, headers()),
    );

    expect(events.headers['content-type']).to.contain('text/event-stream');
    expect(events.events.slice(0, 3)).to.deep.equal([
      { id: '1', event: 'stdout', data: { data: 'héllo' } },
      { id: '2', event: 'stdout', data: { data: '/w==', encoding: 'base64' } },
      { id: '3', event: 'stdout', data: { data: 'YQA=', encoding: 'base64' } },
    ]);
    expect(inBase64.events[0]?.data).to.deep.equal({
      data: Buffer.from('héllo').toString('base64'),
      encoding: 'base64',
    });
    expect(events.events.at(-1)?.data['process']).to.include({ exitCode: 0 });
    expect(later.events.map(({ event, id }) => [event, id])).to.deep.equal([
      ['stdout', '2'],
      ['stdout', '3'],
      ['end', '3'],
    ]);
  });

  it('answer a start with their output on request', async () => {
    const answer = await EventReader.post(server.port, at, {
      headers: headers(),
      body: { command: 'echo hi' },
    });
    const { status, events } = await wholly(answer);

    expect(status).to.equal(201);
    expect(events.map(({ event }) => event)).to.deep.equal(['start', 'stdout', 'end']);
  });

  it('show what was started even if it cannot be read', async () => {
    const sleep = await start({ command: 'sleep 1' });
    const path = `${at}/${sleep}/output`;
    const readers = await Promise.all(
      Array.from({ length: 64 }, () => EventReader.open(server.port, path, headers())),
    );
    const answer = await EventReader.post(server.port, at, {
      headers: headers(),
      body: { command: 'sleep 1' },
    });
    const { status, events } = await wholly(answer);
    for (const reader of readers) reader.close();

    expect([status, events.map(({ event }) => event)]).to.deep.equal([201, ['start', 'error']]);
    expect(events.at(-1)?.data['errorCode']).to.equal('TOO_MANY_STREAMS');
    expect((await server.tenant.get(at)).json.total).to.equal(2);
  });

  it('end a stream with an error when they are deleted', async () => {
    const sleep = await start({ command: 'sleep 1' });
    const reader = (await EventReader.open(server.port, `${at}/${sleep}/output`, headers())).read();
    await server.tenant.delete(`${at}/${sleep}`);

    await wholly(reader);
    expect(reader.events.at(-1)?.event).to.be.oneOf(['end', 'error']);
  });
});

const wholly = async (reader: EventReader): Promise<EventReader> => {
  reader.read();
  await eventually(() => reader.ended, 'the stream ends');
  return reader;
};
