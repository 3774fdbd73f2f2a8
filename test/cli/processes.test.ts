import { expect } from 'chai';
import { FakeProcesses } from '../support/fakes/fake-processes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCliDaemon, cli, startCli, type CliDaemon } from './cli-support.ts';

describe('processes on the command line', function () {
  this.timeout(60_000);
  let daemon: CliDaemon;
  let env: Readonly<Record<string, string>>;
  let sandbox: string;

  before(async () => {
    daemon = await aCliDaemon({ processes: new FakeProcesses() });
    env = { SANDPOOL_DATA_DIR: daemon.dataDir };
    sandbox = (await cli(['sandboxes', 'create'], env)).stdout.trim();
  });
  after(() => daemon.close());

  it('exec prints both streams, hands input on, and ends with the exit code', async () => {
    const echoed = await cli(['exec', sandbox, '--', 'echo', 'hi'], env);
    const missing = await cli(['exec', sandbox, '--', 'nothing'], env);
    const copied = await cli(['exec', sandbox, '-i', '--', 'cat'], env, 'typed');

    expect(echoed).to.deep.equal({ code: 0, stdout: 'hi\n', stderr: '' });
    expect([missing.code, missing.stderr]).to.deep.equal([127, 'nothing: not found\n']);
    expect(copied).to.deep.equal({ code: 0, stdout: 'typed', stderr: '' });
  });

  it('exec passes Ctrl-C on, and ends as the process did', async () => {
    const running = startCli(['exec', sandbox, '--', 'sleep', '61'], env);
    const listed = async (): Promise<string> => (await cli(['ps', sandbox], env)).stdout;
    await eventually(async () => (await listed()).includes('sleep 61'), 'it runs', 20_000);
    running.child.kill('SIGINT');

    expect((await running.ended).code).to.equal(130);
    expect(await listed()).to.match(/Exited \(130\).*sleep 61/);
  });

  it('exec --detach prints the id; ps, kill and attach take it', async () => {
    const id = (await cli(['exec', '--detach', sandbox, '--', 'sleep', '62'], env)).stdout.trim();
    expect((await cli(['ps', sandbox, '-o', 'json'], env)).stdout).to.include(id);
    const killed = await cli(['kill', sandbox, id], env);
    const attached = await cli(['attach', sandbox, id], env);

    expect(killed).to.deep.equal({ code: 0, stdout: `${id} signalled\n`, stderr: '' });
    expect(attached.code).to.equal(143);
    const again = await cli(['kill', sandbox, id], env);
    expect([again.code, again.stderr]).to.deep.equal([
      1,
      'sandpool: the process has ended; its output can still be read (PROCESS_ENDED)\n',
    ]);
  });
});
