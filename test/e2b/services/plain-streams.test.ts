import { expect } from 'chai';
import { rulesOf } from '../../http/an-approving-server.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { sandboxNotRunning } from '../../../src/model/refusals.ts';
import { FakeProcesses } from '../../support/fakes/fake-processes.ts';
import { MemoryFiles } from '../../support/fakes/memory-files.ts';
import { aServedSandbox, type ServedSandbox } from './a-served-sandbox.ts';
import { frame, RpcStream } from './rpc-client.ts';

/** The library takes this for the same, and streams that go without it are not asked for so. */
const BY_LIBRARY = { 'content-type': 'application/connect+json; charset=utf-8' };

describe('a stream without the library', () => {
  let isGone: boolean;
  let served: ServedSandbox;
  let processes: FakeProcesses;
  beforeEach(async () => {
    isGone = false;
    const mustRun = (): void => {
      if (isGone) throw sandboxNotRunning('sandbox');
    };
    processes = new FakeProcesses({ mustRun });
    served = await aServedSandbox({
      driver: {
        processes,
        files: new MemoryFiles(),
        exec: () => Promise.reject(new Error('nothing is run')),
      },
      clock: systemClock(),
      sandboxId: 'sandbox',
    });
  });
  afterEach(() => served.stop());

  const open = async (
    method: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RpcStream> =>
    await RpcStream.open(served.port, `/process.Process/${method}`, body, headers);

  const somethingRan = async (): Promise<string | undefined> => {
    await told(await open('Start', ended));
    return (await processes.list('sandbox'))[0]?.processId;
  };

  /** What a client is told, and what is taken down of it. */
  const told = async (stream: RpcStream): Promise<unknown> => {
    const { statusCode, headers } = stream.answer;
    const last = statusCode === 200 ? await stream.end() : undefined;
    stream.leave();
    const audited = served.audited.splice(0).map(({ operation, status, errorCode }) => ({
      ...{ operation, status, errorCode },
    }));
    const messages = JSON.stringify(stream.messages).replaceAll(/"pid":[0-9]+/g, '"pid":"some"');
    return { statusCode, type: headers['content-type'], messages, last, audited };
  };

  const echo = { process: { cmd: 'echo', args: ['h\u00fc'] }, stdin: false };
  const ended = { process: { cmd: 'true' }, tag: 'done' };
  const asked: Readonly<Record<string, readonly [string, unknown, Record<string, string>?]>> = {
    printing: ['Start', echo],
    failing: ['Start', { process: { cmd: 'false' } }],
    onTerminal: ['Start', { ...echo, pty: { size: { cols: 20, rows: 5 } } }],
    withMore: ['Start', { ...echo, unheardOf: [1, { a: 2 }] }],
    inTime: ['Start', echo, { 'connect-timeout-ms': '60000' }],
    inNoTime: ['Start', echo, { 'connect-timeout-ms': '0' }],
    never: ['Start', echo, { 'connect-timeout-ms': '9999999999' }],
    asRoot: ['Start', echo, { authorization: 'Basic cm9vdDo=' }],
    asUser: ['Start', echo, { authorization: 'Basic dXNlcjo=' }],
    nothing: ['Start', {}],
    nowhere: ['Start', { process: { cmd: 'echo', cwd: '/no/such' } }],
    badName: ['Start', { process: { cmd: 'echo', envs: { 'A=': 'b' } } }],
    noMessage: ['Start', { process: 7 }],
    noJson: ['Start', frame('{"process":')],
    twice: ['Start', Buffer.concat([frame(JSON.stringify(echo)), frame(JSON.stringify(echo))])],
    connected: ['Connect', { process: { tag: 'done' } }, { 'connect-timeout-ms': '60000' }],
    unknown: ['Connect', { process: { pid: 4_000 } }],
    unnamed: ['Connect', {}],
  };

  const bothWays = async (name: string): Promise<readonly [plain: unknown, library: unknown]> => {
    const [method = '', body, headers] = asked[name] ?? [];
    return [
      await told(await open(method, body, headers)),
      await told(await open(method, body, { ...headers, ...BY_LIBRARY })),
    ];
  };

  it('has the same content and audit as with the library', async () => {
    await somethingRan();
    for (const name of Object.keys(asked)) {
      const [plain, library] = await bothWays(name);
      expect(plain, name).to.deep.equal(library);
    }
  });

  it('obeys the same rules', async () => {
    const processId = await somethingRan();
    served.rules = rulesOf(
      'deny operation=startProcess',
      `require path=/sandboxes/sandbox/processes/${processId}/output`,
    );
    for (const name of ['printing', 'connected']) {
      const [plain, library] = await bothWays(name);
      expect(plain, name).to.deep.equal(library);
      expect(plain).to.have.nested.property('last.error.code', 'permission_denied');
    }
  });

  it('for an ended sandbox is refused without a stream', async () => {
    isGone = true;
    const [plain, library] = await bothWays('printing');
    expect(plain).to.deep.equal(library);
    expect(plain).to.include({ statusCode: 502 });
  });
});
