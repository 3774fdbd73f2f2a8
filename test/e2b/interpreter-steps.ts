import type { Sandbox } from '@e2b/code-interpreter';
import { expect } from 'chai';
import { rejection } from '../support/harness/rejection.ts';

/** The SDK leaves the timer of a request running where its answer is a refusal. */
const NO_TIMER = { requestTimeoutMs: 0 } as const;

type InterpreterStep = (sandbox: Sandbox) => Promise<void>;

/**
 * What E2B's code interpreter may expect, by what it comes to, of a sandbox that was created with the variable
 * OF_CLAIM, which says `claim`. In this order.
 */
export const INTERPRETER_STEPS = {
  'keeps variables from one execution to the next': async (sandbox) => {
    const first = await sandbox.runCode('x = 1');
    const second = await sandbox.runCode('x + 1');

    expect(first).to.deep.include({ results: [], error: undefined });
    expect(second.text).to.equal('2');
    expect(second.executionCount).to.equal((first.executionCount ?? 0) + 1);
  },

  'tells what is printed, shown and raised, in the order in which it comes': async (sandbox) => {
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
  },

  'has the variables of the claim, and those of the call over them while it lasts': async (
    sandbox,
  ) => {
    const read = "import os\n(os.environ['OF_CLAIM'], os.environ.get('OWN'))";
    const envs = { OF_CLAIM: 'call', OWN: 'own' };

    expect((await sandbox.runCode(read, { envs })).text).to.equal("('call', 'own')");
    expect((await sandbox.runCode(read)).text).to.equal("('claim', None)");
  },

  'has contexts with variables and folders of their own, of which none stops another': async (
    sandbox,
  ) => {
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
    const gone = await rejection(sandbox.runCode('1', { context: busy, ...NO_TIMER }));
    expect(gone.name).to.equal('NotFoundError');
    await sandbox.removeCodeContext(other.id);
    expect(await sandbox.listCodeContexts()).to.have.lengthOf(1);
  },

  'interrupts code whose client has given up, and goes on with what it knew': async (sandbox) => {
    const code = 'kept = 5\nimport time\nwhile True: time.sleep(1)';
    let kept: string | undefined;
    // A busy machine may not have begun with it when its client gives up.
    for (const timeoutMs of [300, 3_000, 20_000]) {
      const late = await rejection(sandbox.runCode(code, { timeoutMs }));
      expect(late.name).to.equal('TimeoutError');
      kept = (await sandbox.runCode("globals().get('kept')")).text;
      if (kept === '5') break;
    }
    expect(kept).to.equal('5');
  },

  'says that its process ended, and begins anew': async (sandbox) => {
    const { error } = await sandbox.runCode('import os; os.kill(os.getpid(), 9)');
    expect(error).to.deep.include({ name: 'ContextEnded' });
    expect(error?.value).to.contain('SIGKILL');
    expect((await sandbox.runCode("'kept' in globals()")).text).to.equal('False');
  },

  'refuses what it can not do': async (sandbox) => {
    const language = await rejection(sandbox.runCode('1', { language: 'r', ...NO_TIMER }));
    const folder = await rejection(sandbox.createCodeContext({ cwd: '/none' }));
    expect([language.message, folder.message]).to.deep.equal([
      '400 language: r is not provided, only python',
      '400 cwd: there is no folder /none',
    ]);
  },

  'ends code that calls exit, and runs commands of a notebook': async (sandbox) => {
    const ended = await sandbox.runCode("kept = 7\nexit()\nprint('no')");
    expect([ended.error, ended.logs.stdout]).to.deep.equal([undefined, []]);
    const { logs, text } = await sandbox.runCode('!echo by a shell\nkept');
    expect([logs.stdout, text]).to.deep.equal([['by a shell\n'], '7']);
    expect((await sandbox.runCode('exit(3)')).error).to.include({ name: 'SystemExit', value: '3' });
  },
} satisfies Readonly<Record<string, InterpreterStep>>;
