import { Sandbox } from '@e2b/code-interpreter';
import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { readPidFile } from '../../src/process/pid-file.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { rejection } from '../support/harness/rejection.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const TEMPLATE = 'code-interpreter-v1';

describe("E2B's code interpreter, unchanged, on a daemon", function () {
  this.timeout(120_000);
  let daemon: DaemonUnderTest;
  let sandbox: Sandbox;

  before(async function () {
    if (!existsSync('/usr/bin/python3')) return skipBecause(this, 'there is no /usr/bin/python3');
    daemon = await DaemonUnderTest.start(['--compatible-api-listen', '127.0.0.1:0']);
    const tenant = daemon.client();
    await tenant.post('/sandboxpools', { name: TEMPLATE, templateName: TEMPLATE, replicas: 1 });
    await stocked(tenant, 1, TEMPLATE);
    const url = readPidFile(daemon.dataDir)?.compatibleAddress ?? '';
    sandbox = await Sandbox.create({
      ...{ apiKey: toCompatibleForm(daemon.tenantKey), apiUrl: url, sandboxUrl: url },
      envs: { OF_CLAIM: 'claim', LONG: 'é'.repeat(20_000) },
    });
  });
  after(() => daemon?.dispose());

  it('keeps variables from one execution to the next', async () => {
    const first = await sandbox.runCode('x = 1');
    const second = await sandbox.runCode('x + 1');

    expect(first).to.deep.include({ results: [], error: undefined });
    expect([second.text, second.executionCount]).to.deep.equal(['2', 2]);
  });

  it('tells what is printed, shown and raised, in the order in which it comes', async () => {
    const seen: string[] = [];
    const say = (word: string) => (of: { readonly line: string }) =>
      void seen.push(`${word} ${of.line}`);
    const { results, error, logs } = await sandbox.runCode(
      "import sys, os\nprint('é')\nos.system('echo by a program')\n" +
        "display(1)\nprint('no', file=sys.stderr)\n1 / 0",
      {
        onStdout: say('out'),
        onStderr: say('err'),
        onResult: ({ text }) => void seen.push(`result ${text}`),
        onError: ({ name }) => void seen.push(name),
      },
    );

    expect(logs.stdout.toSorted()).to.deep.equal(['by a program\n', 'é\n']);
    expect(seen.slice(-3)).to.deep.equal(['result 1', 'err no\n', 'ZeroDivisionError']);
    expect(results.map(({ isMainResult }) => isMainResult)).to.deep.equal([false]);
    expect(error).to.include({ name: 'ZeroDivisionError', value: 'division by zero' });
    expect(error?.traceback).to.match(/^Traceback[^]*"<cell \d+>", line 6[^]*1 \/ 0/);
  });

  it('has the variables of the claim, and those of the call over them while it lasts', async () => {
    const read =
      "import os\n(os.environ['OF_CLAIM'], os.environ.get('OWN'), len(os.environ['LONG']))";
    const envs = { OF_CLAIM: 'call', OWN: 'own' };

    expect((await sandbox.runCode(read, { envs })).text).to.equal("('call', 'own', 20000)");
    expect((await sandbox.runCode(read)).text).to.equal("('claim', None, 20000)");
  });

  it('has contexts with variables and folders of their own, of which none stops another', async () => {
    const [busy, other] = [
      await sandbox.createCodeContext(),
      await sandbox.createCodeContext({ cwd: '/tmp', language: 'python' }),
    ];
    expect(other).to.deep.include({ language: 'python', cwd: '/tmp' });
    const hanging = sandbox.runCode('while True: pass', { context: busy });
    hanging.catch(() => {});
    const code = 'import os; own = 1; os.getcwd()';
    expect((await sandbox.runCode(code, { context: other })).text).to.equal('/tmp');
    expect((await sandbox.runCode("'own' in globals()")).text).to.equal('False');
    expect((await sandbox.listCodeContexts()).map(({ id }) => id)) //
      .to.include.members([busy.id, other.id]);

    await sandbox.removeCodeContext(busy);
    expect((await hanging).error?.name).to.equal('ContextRemoved');
    await sandbox.restartCodeContext(other);
    const { error } = await sandbox.runCode('own', { context: other });
    expect(error?.name).to.equal('NameError');
    const gone = await rejection(sandbox.runCode('1', { context: busy }));
    expect(gone.name).to.equal('NotFoundError');
    await sandbox.removeCodeContext(other.id);
    expect(await sandbox.listCodeContexts()).to.have.lengthOf(1);
  });

  it('interrupts code whose client has given up, and goes on with what it knew', async () => {
    const code = 'kept = 5\nimport time\nwhile True: time.sleep(1)';
    const late = await rejection(sandbox.runCode(code, { timeoutMs: 300 }));
    expect(late.name).to.equal('TimeoutError');
    expect((await sandbox.runCode('kept')).text).to.equal('5');
  });

  it('says that its process ended, and begins anew', async () => {
    const { error } = await sandbox.runCode('import os; os.kill(os.getpid(), 9)');
    expect(error).to.deep.include({ name: 'ContextEnded' });
    expect(error?.value).to.contain('SIGKILL');
    expect((await sandbox.runCode("'kept' in globals()")).text).to.equal('False');
  });

  it('refuses what it can not do', async () => {
    const language = await rejection(sandbox.runCode('1', { language: 'r' }));
    const folder = await rejection(sandbox.createCodeContext({ cwd: '/none' }));
    expect([language.message, folder.message]).to.deep.equal([
      '400 Bad Request',
      '400 Bad Request',
    ]);
  });

  it('says what is wrong with a bad request', async () => {
    const url = readPidFile(daemon.dataDir)?.compatibleAddress ?? '';
    const headers = {
      'E2b-Sandbox-Id': sandbox.sandboxId,
      'E2b-Sandbox-Port': '49999',
      'E2b-Traffic-Access-Token': sandbox.trafficAccessToken ?? '',
    };
    const ask = async (path: string, body: string): Promise<string> => {
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body });
      return `${answer.status} ${((await answer.json()) as { message: string }).message}`;
    };

    expect([
      await ask('/execute', '{'),
      await ask('/execute', '['.repeat(100_000)),
      await ask('/execute', '{}'),
      await ask('/execute', '{"code":"1","context_id":7}'),
      await ask('/execute', '{"code":"1","context_id":"a","language":"python"}'),
      await ask('/execute', '{"code":"1","env_vars":{"A=":"b"}}'),
      await ask('/execute', '{"code":"1","language":"r"}'),
      await ask('/contexts', '{"cwd":"/none"}'),
      await ask('/contexts/x/restart', ''),
      await ask('/nothing', ''),
      await ask('/execute', ' '.repeat(8_388_609)),
    ]).to.deep.equal([
      '400 the body is not JSON',
      '400 the body is not JSON',
      '400 code: is required',
      '400 context_id: must be text',
      '400 language: the context has one already',
      '400 env_vars: a name is empty, or holds = or a NUL',
      '400 language: r is not provided, only python',
      '400 cwd: there is no folder /none',
      '404 there is no context x',
      '404 there is nothing at this path',
      '413 the body may have 8388608 bytes',
    ]);
  });
});
