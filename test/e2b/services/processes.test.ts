import { expect } from 'chai';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { eventually } from '../../support/harness/eventually.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { aServedSandbox, onAServedSandbox } from './a-served-sandbox.ts';
import { call, frame, RpcStream, type Json, type RpcAnswer } from './rpc-client.ts';

interface Event {
  readonly start?: { readonly pid: number };
  readonly data?: { readonly stdout?: string; readonly stderr?: string; readonly pty?: string };
  readonly end?: Json;
  readonly keepalive?: Json;
}

describe("processes with E2B's SDKs", function () {
  const served = onAServedSandbox();

  const ask = (method: string, body: unknown, headers?: Record<string, string>) =>
    call(served().port, `/process.Process/${method}`, body, headers);
  const open = (method: string, body: unknown, headers?: Record<string, string>) =>
    RpcStream.open(served().port, `/process.Process/${method}`, body, headers);
  const shell = (script: string, part: object = {}, headers?: Record<string, string>) =>
    open(
      'Start',
      { process: { cmd: '/bin/bash', args: ['-c', script], ...part }, stdin: false },
      headers,
    );
  const started = async (stream: RpcStream): Promise<number> =>
    eventOf(await stream.until((message) => 'start' in eventOf(message))).start?.pid ?? 0;
  const ended = async (stream: RpcStream): Promise<Json> =>
    eventOf(await stream.until((message) => 'end' in eventOf(message))).end ?? {};
  const pids = async (): Promise<readonly unknown[]> =>
    ((await ask('List', {})).json['processes'] as Json[] | undefined)?.map(({ pid }) => pid) ?? [];

  it('stream the start, the output and the end', async () => {
    const stream = await shell('echo hi; echo no >&2; exit 3');
    const last = await stream.end();
    const events = stream.messages.map(eventOf);

    expect(stream.answer.statusCode).to.equal(200);
    expect(stream.answer.headers['content-type']).to.equal('application/connect+json');
    expect(events[0]?.start?.pid).to.be.a('number').above(0);
    expect(printed(stream)).to.deep.equal({ stdout: 'hi\n', stderr: 'no\n', pty: '' });
    expect(events.at(-1)?.end).to.deep.equal({
      exitCode: 3,
      exited: true,
      status: 'exit status 3',
      error: 'exit status 3',
    });
    expect(last).to.deep.equal({});
  });

  it('omit zero values of the end, like protobuf', async () => {
    const stream = await shell('true');
    expect(await ended(stream)).to.deep.equal({ exited: true, status: 'exit status 0' });
  });

  it('run with the requested variables in the requested folder', async () => {
    const stream = await shell('echo $A; pwd', { envs: { A: 'b' }, cwd: '/home/user/../user/.' });
    await stream.end();
    expect(printed(stream).stdout).to.equal('b\n/home/sandbox\n');
  });

  it('send pieces of at most 32 KiB, split between characters', async () => {
    const stream = await shell('yes 世é | head -c 300001');
    await stream.end();
    const pieces = stream.messages.flatMap((message) => {
      const { stdout } = eventOf(message).data ?? {};
      return stdout === undefined ? [] : [Buffer.from(stdout, 'base64')];
    });

    expect(Buffer.concat(pieces)).to.have.length(300_001);
    expect(Math.max(...pieces.map((piece) => piece.length))).to.be.at.most(32_768);
    expect(pieces.slice(0, -1).filter((piece) => String(piece).includes('\ufffd'))).to.be.empty;
  });

  it('continue when their client leaves, and can be followed by pid or tag', async () => {
    const body = { process: { cmd: '/bin/cat' }, tag: 'mine' };
    const first = await open('Start', body);
    const pid = await started(first);
    first.leave();
    expect(await pids()).to.include(pid);
    const byPid = await open('Connect', { process: { pid } });
    expect(await started(byPid)).to.equal(pid);
    const byTag = await open('Connect', { process: { tag: 'mine' } });
    expect(await started(byTag)).to.equal(pid);

    const input = { stdin: Buffer.from('hé\n').toString('base64') };
    expect((await ask('SendInput', { process: { pid }, input })).status).to.equal(200);
    expect((await ask('CloseStdin', { process: { pid } })).status).to.equal(200);
    for (const stream of [byPid, byTag]) {
      expect(await ended(stream)).to.include({ status: 'exit status 0' });
      expect(printed(stream).stdout).to.equal('hé\n');
    }
    const late = await open('Connect', { process: { pid } });
    expect(await ended(late)).to.include({ status: 'exit status 0' });
  });

  it('are known for half a minute after their end', async () => {
    const { driver, sandboxId } = served();
    const brief = await shell('exit 5');
    const pid = await started(brief);
    await ended(brief);
    const clock = systemClock();
    let aheadMs = 0;
    const later = await aServedSandbox({
      ...{ driver: driver.driver, sandboxId },
      clock: { now: () => clock.now() + aheadMs, at: (at, act) => clock.at(at - aheadMs, act) },
    });
    try {
      const connected = async (): Promise<Json> => {
        const path = '/process.Process/Connect';
        const stream = await RpcStream.open(later.port, path, { process: { pid } });
        const last = await stream.end();
        return {
          last,
          exitCode: eventOf(stream.messages.at(-1) ?? { event: {} }).end?.['exitCode'],
        };
      };
      expect(await connected()).to.deep.equal({ last: {}, exitCode: 5 });
      aheadMs = 30_000;
      expect(await connected()).to.have.nested.property('last.error.code', 'not_found');
    } finally {
      later.stop();
    }
  });

  it('get `unavailable` when the daemon stops, and can be followed by pid', async () => {
    const { driver, sandboxId } = served();
    const stopping = await aServedSandbox({
      ...{ driver: driver.driver, sandboxId, clock: systemClock() },
    });
    const there = (path: string, body: object): Promise<RpcStream> =>
      RpcStream.open(stopping.port, path, body);
    try {
      const process = { cmd: '/bin/cat' };
      const cat = await there('/process.Process/Start', { process, stdin: true });
      const pid = await started(cat);
      const watch = await there('/filesystem.Filesystem/WatchDir', { path: '/tmp' });
      await watch.until((message) => 'start' in message);
      stopping.endStreams();
      const late = await there('/process.Process/Connect', { process: { pid } });

      for (const stream of [cat, watch, late])
        expect(await stream.end()).to.have.nested.property('error.code', 'unavailable');
      expect(cat.messages.filter((message) => 'end' in eventOf(message))).to.deep.equal([]);
      const on = await open('Connect', { process: { pid } });
      await started(on);
      const input = { stdin: Buffer.from('still here').toString('base64') };
      expect((await ask('SendInput', { process: { pid }, input })).status).to.equal(200);
      expect((await ask('CloseStdin', { process: { pid } })).status).to.equal(200);
      await ended(on);
      expect(printed(on).stdout).to.equal('still here');
    } finally {
      stopping.stop();
    }
  });

  it('accept input of any length, if they read it', async () => {
    const counts = await open('Start', { process: { cmd: 'wc', args: ['-c'] }, stdin: true });
    const pid = await started(counts);
    const input = { stdin: Buffer.alloc(300_000, 'x').toString('base64') };
    expect((await ask('SendInput', { process: { pid }, input })).status).to.equal(200);
    await ask('CloseStdin', { process: { pid } });
    await counts.end();
    expect(printed(counts).stdout).to.equal('300000\n');
  });

  it('accept a stream of input, piece by piece', async () => {
    const cat = await open('Start', { process: { cmd: '/bin/cat' }, stdin: true });
    const pid = await started(cat);
    const headers = { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' };
    const path = '/process.Process/StreamInput';
    const input = request({ port: served().port, path, method: 'POST', headers, agent: false });
    const answered = once(input, 'response') as Promise<[IncomingMessage]>;
    const write = (message: object): void => void input.write(frame(JSON.stringify(message)));
    write({ start: { process: { pid } } });
    for (const word of ['first', 'second']) {
      write({ data: { input: { stdin: Buffer.from(`${word} `).toString('base64') } } });
      write({ keepalive: {} });
      await cat.until(() => printed(cat).stdout.endsWith(`${word} `));
    }
    input.end();
    const [answer] = await answered;
    const frames = await buffer(answer);

    expect([answer.statusCode, frames.subarray(5, 7).toString()]).to.deep.equal([200, '{}']);
    expect(frames.subarray(-2).toString()).to.equal('{}');
    expect((await ask('CloseStdin', { process: { pid } })).status).to.equal(200);
    await cat.end();
    expect(printed(cat).stdout).to.equal('first second ');
  });

  it('are found without a list if their stream is open on this replica', async () => {
    const { processes } = served().driver.driver;
    const { list, find } = processes;
    let lists = 0;
    Object.assign(processes, {
      list: (...given: Parameters<typeof list>) => {
        lists += 1;
        return list.apply(processes, given);
      },
      find: (...given: Parameters<typeof find>) => {
        lists += 1;
        return find.apply(processes, given);
      },
    });
    try {
      const cat = await open('Start', { process: { cmd: '/bin/cat' }, stdin: true });
      const pid = await started(cat);
      const input = { stdin: Buffer.from('key').toString('base64') };
      expect((await ask('SendInput', { process: { pid }, input })).status).to.equal(200);
      expect(lists).to.equal(0);
      expect((await ask('CloseStdin', { process: { pid } })).status).to.equal(200);
      await cat.end();
      expect(printed(cat).stdout).to.equal('key');
      await eventually(
        async () => refusal(await ask('SendInput', { process: { pid }, input }))[0] === 404,
        'it is known no more',
      );
      expect(lists).to.be.above(0);
    } finally {
      Object.assign(processes, { list, find });
    }
  });

  it('accept signals, and report a kill', async () => {
    const sleep = await shell('exec sleep 100');
    const pid = await started(sleep);
    const killed = { process: { pid }, signal: 'SIGNAL_SIGKILL' };
    expect((await ask('SendSignal', killed)).status).to.equal(200);

    const status = 'signal: killed';
    expect(await ended(sleep)).to.deep.equal({ exitCode: -1, status, error: status });
    expect(refusal(await ask('SendSignal', killed))).to.deep.equal([404, 'not_found']);
    expect(await pids()).not.to.include(pid);
  });

  it('get `unavailable` when their sandbox ends, which SDKs treat as a timeout', async () => {
    const sleep = await shell('sleep 100; true');
    const pid = await started(sleep);
    served().isEnding = true;
    await ask('SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
    try {
      expect(await sleep.end()).to.have.nested.property('error.code', 'unavailable');
      expect(sleep.messages.filter((message) => 'end' in eventOf(message))).to.deep.equal([]);
    } finally {
      served().isEnding = false;
    }
  });

  it('can have a terminal, and resize it', async () => {
    const body = { process: { cmd: '/bin/bash' }, pty: { size: { cols: 90, rows: 25 } } };
    const terminal = await open('Start', body);
    const pid = await started(terminal);
    const size = { process: { pid }, pty: { size: { cols: 100, rows: 30 } } };
    expect((await ask('Update', size)).status).to.equal(200);
    const wrong = { stdin: Buffer.from('x').toString('base64') };
    expect(refusal(await ask('SendInput', { process: { pid }, input: wrong }))) //
      .to.deep.equal([400, 'invalid_argument']);
    expect(refusal(await ask('CloseStdin', { process: { pid } }))).to.deep.equal([
      400,
      'failed_precondition',
    ]);
    const pty = Buffer.from('stty size; exit 4\n').toString('base64');
    await ask('SendInput', { process: { pid }, input: { pty } });

    expect(await ended(terminal)).to.include({ exitCode: 4 });
    expect(JSON.stringify(printed(terminal).pty)).to.contain('30 100');
  });

  it('end at the timeout of their start, but not of a connection', async () => {
    const process = { cmd: 'sleep', args: ['100'] };
    const brief = await open('Start', { process, tag: 'brief' }, { 'connect-timeout-ms': '1500' });
    expect(await brief.end()).to.have.nested.property('error.code', 'deadline_exceeded');
    await eventually(async () => {
      const { json } = await ask('List', {});
      return !((json['processes'] ?? []) as Json[]).some(({ tag }) => tag === 'brief');
    }, 'it was killed');

    const long = await started(await shell('exec sleep 100'));
    const look = await open('Connect', { process: { pid: long } }, { 'connect-timeout-ms': '500' });
    expect(await look.end()).to.have.nested.property('error.code', 'deadline_exceeded');
    expect(await pids()).to.include(long);
    await ask('SendSignal', { process: { pid: long }, signal: 9 });
  });

  it('send keepalives while they are silent', async () => {
    const body = { process: { cmd: 'cat' } };
    const silent = await open('Start', body, { 'keepalive-ping-interval': '1' });
    const pid = await started(silent);
    await silent.until((message) => 'keepalive' in eventOf(message));
    await ask('CloseStdin', { process: { pid } });
    expect(await ended(silent)).to.include({ status: 'exit status 0' });
  });

  it('are refused with a code and the name of the fault, in a last frame', async () => {
    for (const [body, code, words, headers] of [
      [{ process: { cmd: 'pwd', cwd: '/no/such' } }, 'invalid_argument', 'cwd'],
      [{ process: { cmd: '' } }, 'invalid_argument', 'process.cmd'],
      [{ process: { cmd: 'a\0b' } }, 'invalid_argument', 'command'],
      [{ process: { cmd: 'id' }, tag: 'x'.repeat(129) }, 'invalid_argument', 'tag'],
      [{ process: { cmd: 'id' }, pty: { size: { cols: 0, rows: 1 } } }, 'invalid_argument', 'cols'],
      [{ process: { cmd: 'id', envs: { 'a=b': '' } } }, 'invalid_argument', 'env'],
      [
        { process: { cmd: 'id' } },
        'invalid_argument',
        'root',
        { authorization: `Basic ${Buffer.from('root:').toString('base64')}` },
      ],
    ] as const) {
      const stream = await open('Start', body, headers);
      const error = (await stream.end())['error'] as Json;
      expect([stream.answer.statusCode, error['code']], words).to.deep.equal([200, code]);
      expect(error['message']).to.contain(words);
      expect(stream.messages).to.deep.equal([]);
    }
  });

  it('with unknown numbers, and unknown calls, are refused', async () => {
    const process = { pid: 4_000_000_000 };
    const unknown = await open('Connect', { process });
    expect((await unknown.end())['error']).to.include({ code: 'not_found' });
    for (const [method, body, expected] of [
      ['SendInput', { process, input: { stdin: '' } }, [404, 'not_found']],
      ['SendSignal', { process, signal: 'SIGNAL_SIGTERM' }, [404, 'not_found']],
      ['SendSignal', { process }, [400, 'invalid_argument']],
      ['SendSignal', { signal: 'SIGNAL_SIGTERM' }, [400, 'invalid_argument']],
      ['Update', { process, pty: { size: { cols: 1, rows: 1 } } }, [404, 'not_found']],
      ['CloseStdin', {}, [400, 'invalid_argument']],
    ] as const)
      expect(refusal(await ask(method, body)), method).to.deep.equal(expected);
    for (const [body, code] of [
      [{ start: { process } }, 'not_found'],
      [{ data: { input: { stdin: '' } } }, 'invalid_argument'],
      [{}, 'invalid_argument'],
    ] as const) {
      const input = await open('StreamInput', body);
      expect((await input.end())['error']).to.include({ code });
    }
  });

  it('are audited like the requests of the API', async () => {
    served().audited.length = 0;
    await (await shell('true')).end();
    await (await open('Start', {})).end();
    await ask('List', {});

    const [good, bad, ...rest] = served().audited;
    expect(good).to.include({ operation: 'startProcess', status: 200 });
    expect(bad).to.include({ operation: 'startProcess', errorCode: 'INVALID_ARGUMENT' });
    expect(rest).to.deep.equal([]);
  });
});

const eventOf = (message: Json): Event => message['event'] as Event;

const refusal = ({ status, json }: RpcAnswer): readonly unknown[] => [status, json['code']];

const printed = (stream: RpcStream) => {
  const all = { stdout: '', stderr: '', pty: '' };
  for (const kind of ['stdout', 'stderr', 'pty'] as const) {
    const pieces = stream.messages.map((message) => eventOf(message).data?.[kind] ?? '');
    all[kind] = String(Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))));
  }
  return all;
};
