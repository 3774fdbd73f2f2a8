import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Body } from '../../src/cli/client/operation-request.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { FakeProcesses } from '../support/fakes/fake-processes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import {
  aCliDaemon,
  cli,
  cliCommand,
  cliHere,
  startCli,
  startCliInTerminal,
  type CliDaemon,
} from './cli-support.ts';

describe('commands on processes', function () {
  let daemon: CliDaemon;
  let env: Readonly<Record<string, string>>;
  let sandbox: string;

  before(async () => {
    daemon = await aCliDaemon({ processes: new FakeProcesses() });
    env = { SANDPOOL_DATA_DIR: daemon.dataDir };
    sandbox = (await cliHere(['sandboxes', 'create'], env)).stdout.trim();
  });
  after(() => daemon.close());
  const daemonApi = (): SandpoolClient =>
    new SandpoolClient({
      server: daemon.url,
      apiKey: readFileSync(join(daemon.dataDir, 'keys/tenant.key'), 'utf8').trim(),
    });
  const startedProcess = async (body: Body<'startProcess'>): Promise<string> => {
    const input = { params: { sandboxId: sandbox }, body };
    return (await daemonApi().call('startProcess', input)).process.processId;
  };

  it('exec prints both streams, passes on input, and ends with the exit code', async () => {
    const echoed = await cli(['exec', sandbox, '--', 'echo', 'hi'], env);
    const missing = await cli(['exec', sandbox, '--', 'nothing'], env);
    const copied = await cli(['exec', sandbox, '-i', '--', 'cat'], env, 'typed');

    expect(echoed).to.deep.equal({ code: 0, stdout: 'hi\n', stderr: '' });
    expect([missing.code, missing.stderr]).to.deep.equal([127, 'nothing: not found\n']);
    expect(copied).to.deep.equal({ code: 0, stdout: 'typed', stderr: '' });
  });

  it('exec and ps report lack of memory', async () => {
    const flooded = await cli(['exec', sandbox, '--', 'flood'], env);

    expect(flooded).to.deep.equal({
      code: 137,
      stdout: '',
      stderr: 'sandpool: the command was killed: the sandbox ran out of memory\n',
    });
    expect((await cliHere(['ps', sandbox], env)).stdout).to.match(
      /Exited \(137, out of memory\).*flood/,
    );
  });

  it('exec passes Ctrl-C on, and ends like the process', async () => {
    const running = startCli(['exec', sandbox, '--', 'sleep', '61'], env);
    const listed = async (): Promise<string> => (await cliHere(['ps', sandbox], env)).stdout;
    await eventually(async () => (await listed()).includes('sleep 61'), 'it runs');
    running.child.kill('SIGINT');

    expect((await running.ended).code).to.equal(130);
    expect(await listed()).to.match(/Exited \(130\).*sleep 61/);
  });

  it('exec --detach prints the id, which ps, kill and attach accept', async () => {
    const id = (
      await cliHere(['exec', '--detach', sandbox, '--', 'sleep', '62'], env)
    ).stdout.trim();
    expect((await cliHere(['ps', sandbox, '-o', 'json'], env)).stdout).to.include(id);
    const killed = await cliHere(['kill', sandbox, id], env);
    const attached = await cliHere(['attach', sandbox, id], env);

    expect(killed).to.deep.equal({ code: 0, stdout: `${id} signalled\n`, stderr: '' });
    expect(attached.code).to.equal(143);
    const again = await cliHere(['kill', sandbox, id], env);
    expect([again.code, again.stderr]).to.deep.equal([
      1,
      'sandpool: the process has ended; its output can still be read (PROCESS_ENDED)\n',
    ]);
  });

  it('logs prints the output of a process, and follows it to its end with -f', async () => {
    const started = (...words: readonly string[]): Promise<string> =>
      cliHere(['exec', '--detach', sandbox, '--', ...words], env).then(({ stdout }) =>
        stdout.trim(),
      );
    const echo = await started('echo', 'hi');
    const sleep = await started('sleep', '63');

    expect(await cliHere(['logs', sandbox, '--process', echo], env)).to.deep.equal({
      code: 0,
      stdout: 'hi\n',
      stderr: '',
    });
    const unfinished = await cliHere(['logs', sandbox, '--process', sleep], env);
    expect([unfinished.code, unfinished.stderr]).to.deep.equal([
      1,
      'sandpool: the process is still running: use -f to see its output\n' +
        `  print its output and follow it: sandpool logs -f ${sandbox} --process ${sleep}\n`,
    ]);
    const following = startCli(['logs', '-f', sandbox, '--process', sleep], env);
    await cliHere(['kill', sandbox, sleep], env);
    expect((await following.ended).code).to.equal(0);
    const tail = await cliHere(['logs', sandbox, '--process', echo, '--tail', '3'], env);
    expect(tail.stderr).to.equal('sandpool: --tail cannot be used with the output of a process\n');
  });

  it('logs shows the source of the lines on a terminal, and other sources', async () => {
    const hint = `sandpool ps ${sandbox}, then: sandpool logs ${sandbox} --process PROCESS`;
    const run = startCliInTerminal(['logs', sandbox], env, { cols: 200, rows: 30 });

    expect(await run.ended).to.equal(0);
    expect(run.output()).to.include('from the main process').and.include(hint);
    expect((await cliHere(['logs', sandbox], env)).stderr, 'no terminal').to.equal('');
  });

  it('do not end a process when its reader stops', async () => {
    const id = await startedProcess({ command: ['cat'], stdin: true });
    const following = startCli(['logs', '-f', sandbox, '--process', id], env);
    const params = { sandboxId: sandbox, processId: id };
    await daemonApi().call('writeToProcess', { params, body: { data: 'first\n' } });
    await eventually(() => following.text.stdout === 'first\n', 'the output is shown');
    following.child.kill('SIGINT');

    expect((await following.ended).code).to.equal(130);
    expect((await daemonApi().call('getProcess', { params })).process.status).to.equal('Running');
  });

  it('end when their reader leaves, even without output', async () => {
    const id = await startedProcess({ command: ['sleep', '65'] });
    const commands = [
      ['exec', sandbox, '--', 'sleep', '66'],
      ['run', '--', 'sleep', '67'],
      ['attach', sandbox, id],
      ['logs', '-f', sandbox],
      ['logs', '-f', sandbox, '--process', id],
      ['events', '-f'],
    ];
    const ends = commands.map(async (args) => {
      const script = '"$@" | true; exit "${PIPESTATUS[0]}"';
      const shell = spawn('bash', ['-c', script, 'bash', ...cliCommand(), ...args], {
        env: { PATH: process.env['PATH'] ?? '', HOME: '/', ...env },
        stdio: 'ignore',
      });
      rememberChild(args.join(' '), shell, () => '');
      const [code] = (await once(shell, 'exit')) as [number | null];
      return [args[0], code];
    });

    expect(await Promise.all(ends)).to.deep.equal(commands.map(([name]) => [name, 141]));
    const { stdout } = await cliHere(['ps', sandbox], env);
    expect(stdout, 'what exec ran ends').to.match(/Exited \(143\).*sleep 66/);
    expect(stdout, 'what it only followed goes on').to.match(/Running.*sleep 65/);
    expect(daemon.left(), 'run gives its sandbox back').to.deep.equal([sandbox]);
  });

  it('run prints both streams at once, passes on input, and ends with the exit code', async () => {
    const missing = await cli(['run', '--', 'nothing'], env);
    const running = startCli(['run', '-i', '--', 'cat'], env);
    running.child.stdin?.write('typed');
    await eventually(() => running.text.stdout === 'typed', 'the output is shown before its end');
    running.child.stdin?.end();

    expect([missing.code, missing.stderr]).to.deep.equal([127, 'nothing: not found\n']);
    expect((await running.ended).code).to.equal(0);
    expect(daemon.left()).to.deep.equal([sandbox]);
  });

  it('complete processes of the named sandbox', async () => {
    const id = (
      await cliHere(['exec', '--detach', sandbox, '--', 'sleep', '64'], env)
    ).stdout.trim();
    for (const words of [
      ['kill', sandbox, ''],
      ['logs', '-f', sandbox, '--process', ''],
      ['attach', sandbox, id.slice(0, 20)],
    ]) {
      await eventually(
        async () => {
          const { stdout } = await cliHere(['__complete', '--', ...words], env);
          return stdout.includes(`${id}\tRunning: sleep 64\n`);
        },
        `${words.join(' ')} offers it: a TAB waits but a moment for the daemon`,
      );
    }
  });
});
