import { expect } from 'chai';
import { request as httpRequest, type ClientRequest } from 'node:http';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { TerminalUnderTest, tokenFor, UpgradeRefused } from '../support/harness/a-terminal.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { type HttpClient, parsedBody, type WireBody } from '../support/harness/http-client.ts';
import { aTemplateFolder, claim, clear, giveBack, run } from '../support/harness/on-a-daemon.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { line } from '../support/harness/line.ts';

const TERMINALS_OF_TENANT = 17;

/** A server in one process: it keeps the connections of `/hang`, and serves all others. */
const SERVER = `
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1:8000', Listen => 512, ReuseAddr => 1) or die "$!";
my @kept;
while (1) {
  my $client = $server->accept or next;
  sysread $client, my $head, 65536;
  if ($head =~ m{^GET /hang }) { push @kept, $client; next }
  syswrite $client, "HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n";
}`;
const TEMPLATES = {
  server: {
    containers: [{ name: 'main', image: 'host', command: ['perl', '-e', SERVER] }],
    endpoints: [{ name: 'app', port: 8_000, readinessProbe: { tcpSocket: {} } }],
  },
  chatty: {
    containers: [
      {
        name: 'main',
        image: 'host',
        command: ['/bin/sh', '-c', 'yes talk | head -c 200000; exec sleep infinity'],
      },
    ],
  },
};

interface Answer {
  readonly status: number;
  readonly json: WireBody;
}

/** A request on a connection of its own, which may stay without an answer. */
class HeldRequest {
  readonly #request: ClientRequest;
  /** Never resolves where it is given up first. */
  readonly answer: Promise<Answer>;
  answered: Answer | undefined;

  constructor(client: HttpClient, port: number, method: string, path: string, body?: object) {
    this.#request = httpRequest({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      headers: { 'SERVICE-API-KEY': client.key, 'Content-Type': 'application/json' },
    });
    this.answer = new Promise((resolve) => {
      this.#request.on('error', () => undefined);
      this.#request.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', () => undefined);
        response.on('end', () => {
          this.answered = { status: response.statusCode ?? 0, json: parsedBody(text) };
          resolve(this.answered);
        });
      });
    });
    this.#request.end(body && JSON.stringify(body));
  }

  giveUp(): void {
    this.#request.destroy();
  }
}

/** What the refusal at a limit advises is done, and the next request is carried out. */
describe('advice in refusals at a limit', function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let templates: ReturnType<typeof aTemplateFolder>;

  before(async () => {
    templates = aTemplateFolder(TEMPLATES);
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 2
      --templates-dir ${templates.folder}
      --limits-terminals-of-tenant ${TERMINALS_OF_TENANT} --logs-file-bytes 65536
      --logs-total-bytes 1048576`);
    client = daemon.client();
  });
  after(async () => {
    await daemon?.dispose();
    templates?.remove();
  });
  afterEach(() => clear(client));

  /**
   * Sends requests that stay under way until one is refused, and returns those that do. Not all in
   * one moment: of those the daemon turns some away for a while.
   */
  const beyond = async (
    most: number,
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly held: readonly HeldRequest[]; readonly refusal: Answer }> => {
    const sent: HeldRequest[] = [];
    const refused = await within('one is refused', async () => {
      for (let count = 0; count < 16; count += 1)
        sent.push(new HeldRequest(client, daemon.run.port, method, path, body));
      await client.get('/sandboxes?limit=1');
      return sent.find(({ answered }) => answered?.status === 429);
    });
    const held = (): readonly HeldRequest[] => sent.filter(({ answered }) => !answered);
    await within('all others are refused', () => held().length === most || undefined);
    return { held: held(), refusal: await refused.answer };
  };

  it('works for commands: an ended command frees a slot', async () => {
    const id = await claim(client);
    await run(client, id, 'mkfifo /tmp/go');
    const path = `/sandboxes/${id}/exec`;
    const { held, refusal } = await beyond(64, 'POST', path, { command: 'cat /tmp/go' });
    expect(refusal.json.error).to.equal(
      'the sandbox has 64 commands in progress, which is the maximum; wait for one to end',
    );

    const terminal = await TerminalUnderTest.open(daemon, client, id);
    terminal.type('echo > /tmp/go\n');
    expect((await Promise.race(held.map(({ answer }) => answer))).status).to.equal(200);
    await untilAnswered(200, () => client.post(path, { command: 'true' }));
    await terminal.hangUp();
  });

  it('works for requests to endpoints: an ended request frees a slot', async () => {
    await client.post('/sandboxpools', { name: 'server', templateName: 'server', replicas: 1 });
    const id = await claim(client, 'server');
    const path = `/sandboxes/${id}/endpoints/app`;
    const { held, refusal } = await beyond(256, 'GET', `${path}/hang`);
    expect(refusal.json.error).to.equal(
      'the sandbox has 256 requests to endpoints in progress, which is the maximum; ' +
        'wait for one to end',
    );

    held[0]?.giveUp();
    await untilAnswered(200, () => client.get(`${path}/`));
    for (const one of held) one.giveUp();
    await client.delete('/sandboxpools/server?force=true');
  });

  it('works for waiting claims: a later one is served', async () => {
    const pool = { name: 'awaited', templateName: 'default', replicas: 0 };
    expect((await client.post('/sandboxpools', pool)).status).to.equal(201);
    const wanted = { poolName: 'awaited', waitTimeoutSeconds: NEVER_COMES_MS / 1_000 };
    const { held, refusal } = await beyond(256, 'POST', '/sandboxes', wanted);
    expect(refusal.json.error).to.equal(
      '256 claims wait for this pool, which is the maximum; try again later',
    );

    for (const one of held) one.giveUp();
    await client.put('/sandboxpools/awaited', { replicas: 1 });
    await untilAnswered(201, () => client.post('/sandboxes', wanted));
  });

  /** Returns what an upgrade is refused with. */
  const refusedTerminal = async (id: string, token: string): Promise<unknown> => {
    try {
      await TerminalUnderTest.open(daemon, client, id, { token });
    } catch (error) {
      if (error instanceof UpgradeRefused && error.status === 429) return error.body['error'];
      throw error;
    }
    return expect.fail('it was opened');
  };
  /** Opens one with the token of the one that was refused, which did not use it up. */
  const opened = (id: string, token: string): Promise<TerminalUnderTest> =>
    within('there is room for a terminal', () =>
      TerminalUnderTest.open(daemon, client, id, { token }).catch(() => undefined),
    );

  it('works for terminals of a sandbox and of a tenant: a closed one frees a slot', async () => {
    const [first, second] = [await claim(client), await claim(client)];
    const terminals: TerminalUnderTest[] = [];
    while (terminals.length < 16)
      terminals.push(await TerminalUnderTest.open(daemon, client, first));
    const token = await tokenFor(client, first);
    expect(await refusedTerminal(first, token)).to.equal(
      'the sandbox has 16 open terminals, which is the maximum; close one first',
    );
    await terminals.pop()?.hangUp();
    terminals.push(await opened(first, token));

    terminals.push(await TerminalUnderTest.open(daemon, client, second));
    const another = await tokenFor(client, second);
    expect(await refusedTerminal(second, another)).to.equal(
      `you have ${TERMINALS_OF_TENANT} open terminals, which is the maximum; close one first`,
    );
    await terminals.pop()?.hangUp();
    terminals.push(await opened(second, another));
    await Promise.all(terminals.map((terminal) => terminal.hangUp()));
  });

  it('works for terminal tokens: a used one frees a slot', async () => {
    const id = await claim(client);
    const tokens = await Promise.all(Array.from({ length: 64 }, () => tokenFor(client, id)));
    const { status, json } = await client.post(`/sandboxes/${id}/exec-token`, {});
    expect(status).to.equal(429);
    expect(json.error).to.equal(
      'the sandbox has 64 unused tokens, which is the maximum; use one, or wait until one expires',
    );

    const terminal = await TerminalUnderTest.open(daemon, client, id, { token: tokens[0] ?? '' });
    expect(await tokenFor(client, id)).to.have.length.above(0);
    await terminal.hangUp();
  });

  const follow = (path: string): Promise<EventReader> =>
    EventReader.open(daemon.run.port, path, {
      'SERVICE-API-KEY': client.key ?? '',
      Accept: 'text/event-stream',
    });

  for (const { what, who, pathOf } of [
    {
      what: 'logs',
      who: 'the sandbox has',
      pathOf: (id: string) => `/sandboxes/${id}/logs?follow=true`,
    },
    { what: 'events', who: 'you have', pathOf: () => '/events' },
  ] as const) {
    it(`works for streams of ${what}: a closed one frees a slot`, async () => {
      const path = pathOf(await claim(client));
      const streams: EventReader[] = [];
      while (streams.length < 16) streams.push(await follow(path));
      expect(streams.map(({ status }) => status)).to.deep.equal(Array(16).fill(200));
      const refused = (await follow(path)).read();
      expect(refused.status).to.equal(429);
      await within('it says why', () => refused.ended || undefined);
      expect(refused.text).to.contain(
        `${who} 16 open streams, which is the maximum; close one first`,
      );

      streams.pop()?.close();
      streams.push(
        await within('there is room for a stream', async () => {
          const stream = await follow(path);
          if (stream.status === 200) return stream;
          stream.close();
          return undefined;
        }),
      );
      for (const stream of streams) stream.close();
    });
  }

  it('works for deleted logs: those of a running sandbox are followed', async () => {
    await client.post('/sandboxpools', { name: 'chatty', templateName: 'chatty', replicas: 1 });
    const gone = await claim(client, 'chatty');
    await within(
      'it has printed',
      async () => (await client.get(`/sandboxes/${gone}/logs`)).text.includes('talk') || undefined,
    );
    await giveBack(client, gone);
    await client.put('/sandboxpools/chatty', { replicas: 14 });
    const { json } = await untilAnswered(404, () => client.get(`/sandboxes/${gone}/logs`));
    expect(json.errorCode).to.equal('LOGS_GONE');
    const hint = String(json.detail?.['hint']);
    const [, path = ''] = / GET (\/v1\/sandboxes\/\{sandboxId\}\/logs\S*)/.exec(hint) ?? [];
    expect(path, hint).to.equal('/v1/sandboxes/{sandboxId}/logs?follow=true');

    const running = await claim(client, 'chatty');
    const stream = (await follow(path.replace('{sandboxId}', running))).read();
    await stream.until((events) => events.length > 0, 'lines of it');
    stream.close();
    await client.delete('/sandboxpools/chatty?force=true');
  });
});
