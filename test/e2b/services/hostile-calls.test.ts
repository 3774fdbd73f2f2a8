import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { Refusal } from '../../../src/model/refusals.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { onAServedSandbox } from './a-served-sandbox.ts';
import { call, frame, RpcStream, sent, type Json } from './rpc-client.ts';

const START = '/process.Process/Start';
const LIST = '/process.Process/List';

describe("hostile calls to E2B's services", function () {
  const served = onAServedSandbox();

  const stream = async (
    body: Buffer,
    headers: Record<string, string> = {},
    path = START,
  ): Promise<unknown> => {
    const opened = await RpcStream.open(served().port, path, body, headers);
    if (opened.answer.headers['content-type'] !== 'application/connect+json') {
      opened.leave();
      return opened.answer.statusCode;
    }
    const { error } = (await opened.end()) as { readonly error?: Json };
    if (error) expect(opened.messages).to.deep.equal([]);
    return error?.['code'];
  };
  const order = JSON.stringify({ process: { cmd: 'true' }, stdin: false });

  it('with invalid frames are refused, and start nothing', async () => {
    const lying = frame(order);
    lying.writeUInt32BE(0xffff_ffff, 1);
    const deep = `{"process":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
    const deeper = `{"unknown":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`;
    const outcomes = {
      short: await stream(frame(order).subarray(0, 20)),
      headOnly: await stream(frame(order).subarray(0, 3)),
      empty: await stream(Buffer.alloc(0)),
      lying: await stream(lying),
      compressed: await stream(frame(order, 1)),
      second: await stream(Buffer.concat([frame(order), frame(order)])),
      notJson: await stream(frame('{"process":')),
      notUtf8: await stream(Buffer.concat([frame('xx').subarray(0, 5), Buffer.of(0xff, 0xfe)])),
      deep: await stream(frame(deep)),
      deeper: await stream(frame(deeper)),
      wrongType: await stream(frame('{"process":7}')),
      surrogate: await stream(frame('{"process":{"cmd":"\\ud800"}}')),
      encoded: await stream(frame(order), { 'content-encoding': 'gzip' }),
      encodedFrames: await stream(frame(order), { 'connect-content-encoding': 'br' }),
      text: await stream(frame(order), { 'content-type': 'text/plain' }),
      proto: await stream(Buffer.of(0, 0, 0, 0, 2, 0xff, 0xff), {
        'content-type': 'application/connect+proto',
      }),
      large: await stream(Buffer.alloc(2 << 20)),
    };

    expect(outcomes.large, 'no limit of a rate, after which clients try again').to.equal(
      'invalid_argument',
    );
    for (const [what, outcome] of Object.entries(outcomes))
      expect(ALLOWED, `${what}: ${String(outcome)}`).to.include(outcome);
    const { json } = await call(served().port, LIST, {});
    expect(json).to.deep.equal({});
  });

  it('beyond the size of their kind are refused before they are read', async () => {
    const refused = await Promise.all(
      (
        [
          [START, 262_145],
          ['/process.Process/SendInput', 1_048_577],
          [LIST, 65_537],
          ['/filesystem.Filesystem/Stat', 65_537],
        ] as const
      ).map(async ([path, bytes]) => {
        const asked = httpRequest({ port: served().port, path, method: 'POST', agent: false });
        asked.setHeader('content-type', 'application/json').setHeader('content-length', bytes);
        asked.on('error', () => undefined).flushHeaders();
        const [answer] = (await once(asked, 'response')) as [IncomingMessage];
        asked.destroy();
        return answer.statusCode;
      }),
    );

    expect(refused).to.deep.equal([400, 400, 400, 400]);
  });

  it('with more values than a start can have are refused before they are parsed', async () => {
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`v${n}`, '']));
    const tooMany = JSON.stringify({ process: { cmd: 'true', envs: many } });
    const parsed = new Set<unknown>();
    const parse = JSON.parse;
    JSON.parse = (text: string, ...more) => {
      parsed.add(text);
      return parse(text, ...more) as unknown;
    };
    try {
      expect(await stream(frame(tooMany))).to.equal('invalid_argument');
      expect(await stream(Buffer.concat([frame('{}'), frame(tooMany)]))).to.equal(
        'invalid_argument',
      );
      const { status } = await call(served().port, LIST, { a: Array(3_000).fill(0) });
      expect(status).to.equal(400);
      const values = Buffer.concat([frame('{"keepalive":{}}'), frame(tooMany)]);
      expect(await stream(values, {}, '/process.Process/StreamInput')).to.equal('invalid_argument');
      expect([...parsed]).to.not.include(tooMany);
    } finally {
      JSON.parse = parse;
    }
    // commas and quotes of a text are not values
    const text = `true ${','.repeat(5_000)}\\\\",,,`;
    expect(await stream(frame(JSON.stringify({ process: { cmd: 'true', args: [text] } })))) //
      .to.equal(undefined);
  });

  it('of a tenant with costly calls wait for their turn, like those of the API', async () => {
    const { admission, caller } = served();
    const parse = admission.parse.bind(admission);
    const asked: unknown[] = [];
    admission.parse = (...of) => {
      asked.push(of);
      return Promise.reject<void>(new Refusal('RATE_LIMITED', 'too much waits'));
    };
    try {
      expect(await stream(frame(order))).to.equal(429);
      expect((await call(served().port, LIST, {})).status).to.equal(429);
    } finally {
      admission.parse = parse;
    }
    expect(asked).to.deep.equal([
      [caller, frame(order).length],
      [caller, 2],
    ]);
  });

  it("have timeouts in the protocol's form, and are refused otherwise", async () => {
    for (const timeout of ['-1', '1000000000000000', '9999999999', '1.5', 'x', ''])
      expect(await stream(frame(order), { 'connect-timeout-ms': timeout }), timeout) //
        .to.equal('invalid_argument');
    expect(await stream(frame(order), { 'connect-timeout-ms': '0' })).to.equal('deadline_exceeded');
    const { json } = await call(served().port, LIST, {}, { 'connect-timeout-ms': '5000' });
    expect(json).to.deep.equal({});
    for (const timeout of ['-1', '1000000000000000', '9999999999', '1.5', 'x', ''])
      expect(await call(served().port, LIST, {}, { 'connect-timeout-ms': timeout }), timeout) //
        .to.have.property('status', 400);
  });

  it('to watch are limited to the share of a sandbox', async () => {
    const streams = await Promise.all(
      Array.from({ length: 200 }, () =>
        RpcStream.open(served().port, '/filesystem.Filesystem/WatchDir', { path: '/tmp' }),
      ),
    );
    let refused = 0;
    const kept: RpcStream[] = [];
    for (const stream of streams) {
      await stream
        .until((message) => 'start' in message)
        .then(
          () => kept.push(stream),
          () => {
            expect(stream.last?.['error']).to.include({ code: 'resource_exhausted' });
            refused += 1;
          },
        );
    }
    expect([kept.length > 0, kept.length < 64, refused + kept.length]) //
      .to.deep.equal([true, true, 200]);
    for (const stream of kept) stream.leave();
    await eventually(async () => {
      const again = await RpcStream.open(served().port, '/filesystem.Filesystem/WatchDir', {
        path: '/tmp',
      });
      const isLetIn = await again
        .until((message) => 'start' in message)
        .then(
          () => true,
          () => false,
        );
      again.leave();
      return isLetIn;
    }, 'their places are given back');
  });

  it('with one answer are refused without a server error', async () => {
    const deep = `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
    for (const [body, headers, expected] of [
      ['{', {}, 400],
      ['[]', {}, 400],
      ['7', {}, 400],
      ['', {}, 400],
      [deep, {}, 200],
      ['{"signal":"NONE"}', {}, 400],
      ['{"signal":99}', {}, 400],
      ['{"process":{"pid":-1}}', {}, 400],
      ['{"process":{"pid":1.5}}', {}, 400],
      ['{"process":{"pid":1e99}}', {}, 400],
      ['{"process":{"pid":1,"tag":"x"}}', {}, 400],
      ['{}', { 'content-type': 'text/plain' }, 415],
      ['{}', { 'content-encoding': 'gzip' }, 415],
      ['x'.repeat(2 << 20), {}, 400],
    ] as const) {
      const path = body === deep ? LIST : '/process.Process/SendSignal';
      const { status } = await call(served().port, path, body, headers);
      expect(status, body.slice(0, 40)).to.equal(expected);
    }
  });

  it('to unknown paths and by unknown methods are refused', async () => {
    for (const [path, method, expected] of [
      ['/process.Process/None', 'POST', 404],
      ['/process.Process/', 'POST', 404],
      ['/init', 'POST', 404],
      ['/', 'GET', 404],
      [`${LIST}/`, 'POST', 404],
      [LIST, 'GET', 405],
      [START, 'PUT', 405],
    ] as const) {
      const answer = await sent(served().port, path, {
        method,
        headers: {
          'content-type': path === START ? 'application/connect+json' : 'application/json',
        },
      });
      await buffer(answer);
      expect(answer.statusCode, `${method} ${path}`).to.equal(expected);
    }
  });

  it('with an invalid host are served', async () => {
    const answer = await sent(served().port, LIST, {
      body: '{}',
      headers: { 'content-type': 'application/json', host: 'a b:%' },
    });
    await buffer(answer);
    expect(answer.statusCode).to.equal(200);
  });

  it('without an end are cut off at the maximum size', async () => {
    const told = await new Promise<string>((resolve, reject) => {
      const headers = { 'content-type': 'application/connect+json' };
      const request = httpRequest(
        { port: served().port, path: START, method: 'POST', headers, agent: false },
        (answer) => {
          buffer(answer).then((bytes) => resolve(String(bytes)), reject);
          request.off('drain', more);
        },
      );
      request.on('error', reject);
      const more = (): void => {
        while (request.write(Buffer.alloc(65_536)));
      };
      request.on('drain', more);
      more();
    });
    expect(told).to.contain('"code":"invalid_argument"').and.to.contain('is larger than');
  });

  it('of clients that leave at once, or read nothing, release their slots', async () => {
    const endless = frame(JSON.stringify({ process: { cmd: 'yes' }, stdin: false }));
    const headers = { 'content-type': 'application/connect+json' };
    for (let round = 0; round < 4; round += 1) {
      const streams: IncomingMessage[] = [];
      await Promise.all(
        Array.from({ length: 20 }, async (_, at) => {
          const request = httpRequest({
            ...{ port: served().port, path: START, method: 'POST', headers, agent: false },
          });
          request.on('error', () => {});
          request.end(endless);
          if (at % 2 === 0) return void request.once('socket', () => request.destroy());
          streams.push(
            await new Promise<IncomingMessage>((resolve) => request.once('response', resolve)),
          );
        }),
      );
      for (const stream of streams) stream.destroy();
      await eventually(async () => {
        const { json } = await call(served().port, LIST, {});
        const processes = (json['processes'] ?? []) as Json[];
        for (const { pid } of processes)
          await call(served().port, '/process.Process/SendSignal', { process: { pid }, signal: 9 });
        return processes.length === 0;
      }, 'all are ended');
    }
    expect(await stream(frame(order))).to.equal(undefined);
  });

  it('for an ended sandbox get 502, including streams', async () => {
    const own = served().sandboxId;
    served().sandboxId = '00000000-0000-7000-8000-000000000000';
    try {
      const { status } = await call(served().port, LIST, {});
      const opened = await RpcStream.open(served().port, START, { process: { cmd: 'true' } });
      await buffer(opened.answer);
      const file = await sent(served().port, '/files?path=/tmp/x', { method: 'GET' });
      await buffer(file);
      expect([status, opened.answer.statusCode, file.statusCode]).to.deep.equal([502, 502, 502]);
    } finally {
      served().sandboxId = own;
    }
  });
});

/** Codes in a last frame, and statuses, that lay it at the client's door. */
const ALLOWED: readonly unknown[] = [
  'invalid_argument',
  'resource_exhausted',
  'unimplemented',
  400,
  413,
  415,
];
