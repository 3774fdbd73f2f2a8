import { expect } from 'chai';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { openTerminal } from '../../src/cli/client/terminal-connection.ts';
import { sandboxNotRunning } from '../../src/model/refusals.ts';
import { rejection } from '../support/harness/rejection.ts';
import {
  aTerminalDaemon,
  SANDBOX,
  type FakeTerminal,
  type TerminalDaemon,
} from '../http/terminal-support.ts';
import { eventually } from '../support/harness/eventually.ts';

describe('the client’s terminal', () => {
  let daemon: TerminalDaemon;
  beforeEach(async () => {
    daemon = await aTerminalDaemon();
  });
  afterEach(() => daemon.close());

  const open = () =>
    openTerminal({
      server: new URL(`http://127.0.0.1:${daemon.port}`),
      sandboxId: SANDBOX,
      token: 's3cret',
      cols: 100,
      rows: 40,
      deadlineMs: 30_000,
    });
  const behind = (): FakeTerminal => daemon.terminals[0] as FakeTerminal;

  it('opens with its token in a header, and its size', async () => {
    const terminal = await open();
    expect(daemon.asked[0]).to.deep.equal({
      clusterId: 'local',
      sandboxId: SANDBOX,
      token: 's3cret',
      cols: 100,
      rows: 40,
    });
    terminal.close();
  });

  it('carries bytes both ways, resizes and signals', async () => {
    const terminal = await open();
    terminal.stream.write('ls\r');
    terminal.resize(50, 20);
    terminal.signal('INT');
    await eventually(() => behind().signals.length > 0, 'the signal is there');
    expect([behind().typed, behind().sizes, behind().signals]).to.deep.equal([
      'ls\r',
      ['50x20'],
      ['INT'],
    ]);
    behind().print('out');
    const [chunk] = (await once(terminal.stream, 'data')) as [Buffer];
    expect(chunk.toString()).to.equal('out');
    terminal.close();
  });

  it('returns all output, then the exit code', async () => {
    const terminal = await open();
    const output = randomBytes(3 * 1024 * 1024);
    behind().print(output);
    behind().exitWith(9);
    const chunks: Buffer[] = [];
    for await (const chunk of terminal.stream as AsyncIterable<Buffer>) chunks.push(chunk);
    expect(Buffer.concat(chunks).equals(output)).to.equal(true);
    expect(await terminal.ended).to.deep.equal({
      exitCode: 9,
      code: 1000,
      reason: 'the shell ended',
    });
  });

  it('sends input of any length in messages that the server accepts', async () => {
    const terminal = await open();
    terminal.stream.write(Buffer.alloc(300_000, 'x'));
    await eventually(() => behind().typedBytes === 300_000, 'all is typed');
    terminal.close();
  });

  it("reports the cause of an end other than the shell's", async () => {
    const terminal = await open();
    behind().end();
    expect(await terminal.ended).to.deep.equal({
      exitCode: undefined,
      code: 4004,
      reason: 'the sandbox ended',
    });
  });

  it('hangs up', async () => {
    const terminal = await open();
    terminal.close();
    expect((await terminal.ended).exitCode).to.equal(undefined);
    await eventually(() => behind().closes > 0, 'the terminal is given back');
  });

  it("rejects with the server's message if the upgrade is refused", async () => {
    daemon.refuseWith = sandboxNotRunning('Stopping');
    const error = (await rejection(open())) as ApiError;
    expect([error.name, error.status, error.errorCode, error.message]).to.deep.equal([
      'ApiError',
      409,
      'SANDBOX_NOT_RUNNING',
      'the sandbox is Stopping, not Running',
    ]);
  });

  it('rejects with ConnectionFailed if nothing listens', async () => {
    const error = (await rejection(
      openTerminal({
        server: new URL('http://127.0.0.1:1'),
        sandboxId: SANDBOX,
        token: 't',
        cols: 80,
        rows: 24,
        deadlineMs: 30_000,
      }),
    )) as ConnectionFailed;
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'ECONNREFUSED']);
  });

  it('rejects with ConnectionFailed if the upgrade is not answered in time', async () => {
    daemon.hold = new Promise(() => {});
    const error = (await rejection(
      openTerminal({
        server: new URL(`http://127.0.0.1:${daemon.port}`),
        sandboxId: SANDBOX,
        token: 't',
        cols: 80,
        rows: 24,
        deadlineMs: 100,
      }),
    )) as ConnectionFailed;
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'DEADLINE']);
  });
});
