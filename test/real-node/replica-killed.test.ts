import { expect } from 'chai';
import {
  compatibleClient,
  connectRaw,
  HttpClient,
  type HttpAnswer,
  type RawConnection,
} from '../support/harness/http-client.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { realTemplate } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { rejection } from '../support/harness/rejection.ts';
import { compatibleId } from '../../src/http/e2b/sandbox-id.ts';
import type { InstanceId } from '../../src/model/identifiers.ts';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { RpcStream, type Json } from '../e2b/services/rpc-client.ts';

const STARTS = 6;
const OLD = 'what was there before';
/** More than all buffers on the way hold. */
const LARGE = 48 << 20;
const UPLOAD = 4 << 20;
const COUNTING = 'i=0; while :; do i=$((i + 1)); echo $i; sleep 0.05; done';

/** All is under way in one sandbox by one replica when that is killed; the other one goes on. */
describe('a killed replica with a real node', function () {
  const cluster = onTheRealNode();
  const replicas = onReplicas(cluster, {
    count: 2,
    env: { SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0' },
  });
  let key: string;
  let other: HttpClient;
  let id: string;
  let reader: EventReader;
  /** By the second port. */
  let stream: RpcStream;
  let upload: RawConnection;
  let download: RawConnection;
  let starts: readonly Promise<HttpAnswer>[];
  const opened: { readonly close: () => void }[] = [];

  const headers = (): Readonly<Record<string, string>> => ({ 'SERVICE-API-KEY': key });
  const at = (path: string): string => `/sandboxes/${id}/${path}`;
  const inside = async (command: string): Promise<string> => {
    const { json } = await untilAnswered(200, () => other.post(at('exec'), { command }));
    return String(json.stdout);
  };
  /** Opens a stream of a process by the second port of a replica, as a client does that connects anew. */
  const streamOf = async (index: number, method: string, body: object): Promise<RpcStream> => {
    const url = readPidFile(replicas().replica(index).dataDir)?.compatibleAddress ?? '';
    const port = Number(new URL(url).port);
    const client = compatibleClient(port, toCompatibleForm(key));
    opened.push(client);
    const path = `/sandboxes/${compatibleId(id as InstanceId)}/connect`;
    const { text } = await untilAnswered(200, () => client.post(path, {}));
    const { envdAccessToken } = JSON.parse(text) as { readonly envdAccessToken: string };
    const byToken = { 'X-Access-Token': envdAccessToken };
    return await RpcStream.open(port, `/process.Process/${method}`, body, byToken);
  };
  const start = (client: HttpClient, n: number): Promise<HttpAnswer> =>
    client.post(
      at('processes'),
      { command: `exec sleep ${90_000 + n}`, tag: 'started' },
      { headers: { 'Idempotency-Key': `start-${n}` } },
    );
  const raw = async (method: string, path: string, more = ''): Promise<RawConnection> => {
    const connection = await connectRaw(replicas().replica(0).port);
    connection.socket.write(
      `${method} ${at(path)} HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${key}\r\n${more}\r\n`,
    );
    return connection;
  };

  before('a sandbox in which all is under way', async function () {
    await cluster().apply(realTemplate('waits', ['sleep', '1000000']));
    key = await replicas().tenant('tenant', 'alice');
    const killed = new HttpClient(replicas().replica(0).port, key);
    other = new HttpClient(replicas().replica(1).port, key);
    opened.push(killed, other);
    const pool = { name: 'waits', templateName: 'waits', replicas: 1 };
    await untilAnswered(201, () => killed.post('/sandboxpools', pool));
    const claim = (): Promise<HttpAnswer> => killed.post('/sandboxes', { poolName: 'waits' });
    const { json } = await untilAnswered(201, claim);
    id = String(json.sandbox?.['sandboxId']);
    await inside(
      `mkdir /tmp/up; printf '${OLD}' >/tmp/up/file; head -c ${LARGE} /dev/zero >/tmp/large`,
    );

    reader = await EventReader.post(replicas().replica(0).port, at('processes'), {
      headers: headers(),
      body: { command: COUNTING, tag: 'counts' },
    });
    opened.push(reader.read());
    await reader.until((events) => events.length > 3, 'it counts');
    const counts = { process: { cmd: 'sh', args: ['-c', COUNTING] }, stdin: false };
    stream = await streamOf(0, 'Start', counts);
    await stream.until((message) => stdoutOf(message) !== '');
    download = await raw('GET', 'files?path=/tmp/large');
    await eventually(() => download.received().length > 0, 'the download began');
    download.socket.pause();
    upload = await raw('PUT', 'files?path=/tmp/up/file', `Content-Length: ${UPLOAD}\r\n`);
    upload.socket.write(Buffer.alloc(UPLOAD / 2, 'x'));
    await eventually(
      async () => Number(await inside(opensOf('/tmp/up/.*'))) === 1,
      'the upload has a draft',
    );
    starts = Array.from({ length: STARTS }, (_, n) => start(killed, n));
    await Promise.race(starts);
    await replicas().replica(0).kill();
    download.socket.resume();
  });
  after(() => {
    for (const each of opened) each.close();
  });

  it('leaves one process or none per start, which a repeated request finds', async () => {
    const answers = await Promise.allSettled(starts);
    // or a busy node has no time for one
    for (const answer of answers)
      if (answer.status === 'fulfilled' && answer.value.json.errorCode !== 'UNAVAILABLE')
        expect(answer.value.status).to.equal(201);
    const numbers = Array.from({ length: STARTS }, (_, n) => n);
    const again = await Promise.all(numbers.map((n) => untilAnswered(201, () => start(other, n))));
    const answered = (each: HttpAnswer): string =>
      (each.json as { process?: { processId?: string } }).process?.processId ?? '';

    const ids = again.map(answered);
    expect(new Set(ids).size).to.equal(STARTS);
    for (const [n, answer] of answers.entries())
      if (answer.status === 'fulfilled' && answer.value.status === 201)
        expect(answered(answer.value)).to.equal(ids[n]);
    const { json } = await other.get(at('processes'));
    const known = json.items?.filter(({ tag }) => tag === 'started');
    expect(known?.map(({ status }) => status)).to.deep.equal(ids.map(() => 'Running'));
    await eventually(
      async () => Number(await inside(countOf('sleep 9000'))) === STARTS,
      'each runs once',
    );
  });

  it('breaks its streams, and another replica continues after the last event', async () => {
    await eventually(() => reader.ended, 'the stream was cut');
    const seen = reader.events.filter(({ event }) => event === 'stdout');
    expect(reader.events.some(({ event }) => event === 'end')).to.equal(false);
    const [begun] = reader.events;
    const process = begun?.data['process'] as { readonly processId: string } | undefined;
    const processId = String(process?.processId);

    const on = await EventReader.open(
      replicas().replica(1).port,
      at(`processes/${processId}/output?from=${seen.at(-1)?.id}`),
      headers(),
    );
    await on.read().until((events) => events.length > 3, 'it counts on');
    const text = [...seen, ...on.events].map(({ data }) => String(data['data'])).join('');
    on.close();
    const numbers = text.trim().split('\n').map(Number);
    expect(numbers).to.deep.equal(numbers.map((_, n) => n + 1));
    expect((await other.delete(at(`processes/${processId}`))).status).to.equal(200);
  });

  it('breaks its streams on the second port, and another replica continues by the pid', async () => {
    expect((await rejection(stream.end())).message).to.be.a('string');
    expect(stream.messages.filter((message) => 'end' in eventOf(message))).to.deep.equal([]);
    const last = Number(stream.messages.map(stdoutOf).join('').trim().split('\n').at(-1));
    const pid = pidOf(stream);

    const on = await streamOf(1, 'Connect', { process: { pid } });
    opened.push({ close: () => on.leave() });
    expect(eventOf(await on.until((message) => 'start' in eventOf(message)))).to.deep.equal({
      start: { pid },
    });
    const said = stdoutOf(await on.until((message) => stdoutOf(message).includes('\n')));
    expect(Number(said.split('\n')[0])).to.be.above(last);
  });

  it('leaves the old file intact, and no draft of its upload', async () => {
    expect(await upload.closed(NEVER_COMES_MS)).to.not.include(' 20');
    expect((await other.get(at('files?path=/tmp/up/file'))).text).to.equal(OLD);
    await eventually(
      async () => Number(await inside(opensOf('/tmp/up/.*'))) === 0,
      'its draft is gone',
    );
    expect(await inside('ls -A /tmp/up')).to.equal('file\n');

    const content = Buffer.alloc(UPLOAD, 'y');
    const written = await other.send('PUT', at('files?path=/tmp/up/file'), {
      raw: content,
      headers: { 'Content-Type': 'application/octet-stream' },
    });
    expect(written.status).to.equal(200);
    expect(await inside('tr -d y </tmp/up/file | wc -c; wc -c </tmp/up/file')).to.equal(
      `0\n${UPLOAD}\n`,
    );
  });

  it('truncates its downloads, and leaves no reader behind', async () => {
    const received = await download.closed(NEVER_COMES_MS);
    expect(received).to.match(new RegExp(`^HTTP/1.1 200 [^]*content-length: ${LARGE}\r\n`, 'i'));
    expect(received.length).to.be.below(LARGE);
    await eventually(
      async () => Number(await inside(opensOf('/tmp/large'))) === 0,
      'nobody reads the file',
    );

    const end = await other.get(at('files?path=/tmp/large'), { headers: { Range: 'bytes=-4' } });
    expect([end.status, end.text]).to.deep.equal([206, '\0\0\0\0']);
  });

  it('continues after its restart with streams of another replica that stopped', async function () {
    await replicas().replica(0).start();
    const process = { pid: pidOf(stream) };
    const ending = await streamOf(1, 'Connect', { process });
    await ending.until((message) => stdoutOf(message) !== '');

    const [last] = await Promise.all([ending.end(), replicas().replica(1).stop()]);
    expect(last).to.have.nested.property('error.code', 'unavailable');
    // while it takes over what the other one led, it may end one that has just begun
    await eventually(async () => {
      const on = await streamOf(0, 'Connect', { process });
      opened.push({ close: () => on.leave() });
      return await on
        .until((message) => stdoutOf(message) !== '')
        .then(
          () => true,
          () => false,
        );
    }, 'it goes on there');
  });
});

const pidOf = ({ messages: [first = {}] }: RpcStream): number =>
  (eventOf(first)['start'] as { readonly pid: number }).pid;

const eventOf = (message: Json): Json => (message['event'] ?? {}) as Json;

const stdoutOf = (message: Json): string => {
  const { stdout = '' } = (eventOf(message)['data'] ?? {}) as { readonly stdout?: string };
  return String(Buffer.from(stdout, 'base64'));
};

/** Counts processes by their command line; that of who looks has other words. */
const countOf = (words: string): string =>
  `for p in /proc/[0-9]*; do tr '\\0' ' ' 2>/dev/null <$p/cmdline; echo; done | ` +
  `grep -c '[${words[0]}]${words.slice(1)}'; :`;

/** Counts who has the file open. */
const opensOf = (path: string): string =>
  `ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c '> ${path}$'; :`;
