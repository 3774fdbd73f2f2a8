import { expect } from 'chai';
import { callsOf, failing } from '../support/harness/engine-operations.ts';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { noIdleInstance } from '../../src/model/pools/exhausted-pool.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  aCliDaemon,
  cli,
  cliHere,
  startCli,
  startCliInTerminal,
  terminalWasRestored,
  type CliDaemon,
} from './cli-support.ts';

describe('sandpool run', function () {
  let daemon: CliDaemon;
  let env: Record<string, string>;
  beforeEach(async () => {
    daemon = await aCliDaemon();
    env = { SANDPOOL_DATA_DIR: daemon.dataDir };
  });
  afterEach(() => daemon.close());

  const refuseClaims = (refusal: Error): void => {
    failing(daemon.operations, refusal, 'claimSandbox');
  };

  it("claims, runs, prints, gives back, and ends with the command's exit code", async () => {
    const end = await cli(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'], env);
    expect(end).to.deep.equal({ code: 7, stdout: 'out\n', stderr: 'err\n' });
    expect(daemon.operations.sandboxes.size).to.equal(1);
    expect(daemon.left()).to.deep.equal([]);
  });

  it("passes on the command's own options, with and without --", async () => {
    expect((await cliHere(['run', 'echo', '-n', '--pool', 'x'], env)).stdout).to.equal('--pool x');
    expect((await cliHere(['run', '--', 'echo', '-n', '--', 'x'], env)).stdout).to.equal('-- x');
  });

  it('accepts the options of exec before and after the sandbox, up to the command', async () => {
    const sandbox = (await cliHere(['sandboxes', 'create'], env)).stdout.trim();
    for (const words of [
      ['--timeout', '1', sandbox, '--'],
      [sandbox, '--timeout', '1', '--'],
      [sandbox, '--timeout=1'],
    ]) {
      const end = await cliHere(['exec', ...words, 'sleep', '60'], env);
      expect([end.code, end.stderr], words.join(' ')).to.deep.equal([
        124,
        'sandpool: the command was ended after 1 s\n  with -t it may run longer\n',
      ]);
    }
    expect(
      (await cli(['exec', sandbox, '-i', '--', 'tr', 'a-z', 'A-Z'], env, 'hello')).stdout,
    ).to.equal('HELLO');
    expect(
      (await cliHere(['exec', sandbox, 'echo', '-n', '--timeout', '5'], env)).stdout,
      'the command’s own',
    ).to.equal('--timeout 5');
    expect((await cliHere(['exec', sandbox, '--', 'echo', '-n', '--', 'x'], env)).stdout).to.equal(
      '-- x',
    );
    expect(
      (await cliHere(['exec', sandbox, '--tmeout', '5', '--', 'true'], env)).stderr,
    ).to.include("unknown option '--tmeout'");
    expect((await cliHere(['exec', sandbox, '--help'], env)).stdout).to.include(
      '--timeout <seconds>',
    );
  });

  it('claims from the given pool with the given idle timeout', async () => {
    const refused = await cliHere(['run', '--pool', 'other', '--', 'true'], env);
    expect(refused.code).to.equal(125);
    expect(refused.stderr)
      .to.include('pool other not found')
      .and.include('available: default')
      .and.include('sandpool pools create other --template');
    const claims = callsOf(daemon.operations, 'claimSandbox');
    await cliHere(['run', '--idle-timeout', '90s', '--', 'true'], env);
    expect(claims[0]?.[1].idleTimeoutMs).to.equal(90_000);
  });

  it('waits for an instance as long as requested, by default 10 s', async () => {
    const claims = callsOf(daemon.operations, 'claimSandbox');
    await cliHere(['run', '--wait', '90s', '--', 'true'], env);
    await cliHere(['run', '--', 'true'], env);
    await cliHere(['run', '--wait', '0', '--', 'true'], env);
    expect(claims.map(([, { waitMs }]) => waitMs)).to.deep.equal([90_000, 10_000, 0]);
    expect((await cliHere(['run', '--wait', '6m', '--', 'true'], env)).stderr).to.include(
      '5m at most',
    );
  });

  it('passes on its input on request', async () => {
    expect((await cli(['run', '-i', '--', 'tr', 'a-z', 'A-Z'], env, 'hello')).stdout).to.equal(
      'HELLO',
    );
  });

  it('ends with 124 and a message when the command times out', async () => {
    const end = await cliHere(['run', '--timeout', '1', '--', 'sleep', '60'], env);
    expect(end.code).to.equal(124);
    expect(end.stderr).to.include('the command was ended after 1 s');
    expect(daemon.left()).to.deep.equal([]);
  });

  it('ends with 125 and the remedy if the pool is exhausted', async () => {
    refuseClaims(
      noIdleInstance(
        { name: 'default' },
        { idle: 0, running: 4, starting: 0, stopping: 0, retiring: 0, failed: 0 },
      ),
    );
    const end = await cliHere(['run', '--', 'true'], env);
    expect(end.code).to.equal(125);
    expect(end.stdout).to.equal('');
    expect(end.stderr)
      .to.include('pool default has no idle sandbox (POOL_EXHAUSTED)')
      .and.include('sandpool sandboxes delete')
      .and.include('sandpool pools update')
      .and.include('4 of the pool')
      .and.not.match(/\bpods?\b/i);
  });

  it('explains how to wait for an instance of a pool that is still starting', async () => {
    refuseClaims(
      noIdleInstance(
        { name: 'default' },
        { idle: 0, running: 0, starting: 0, stopping: 0, retiring: 0, failed: 0, missing: 3 },
      ),
    );
    expect((await cliHere(['run', '--', 'true'], env)).stderr)
      .to.include('instances are waiting to start: claim with --wait 60s, or try again shortly')
      .and.not.include('pools update');
  });

  it("ends with 125 and the remedy for an env's pool, and for another user's", async () => {
    const counts = { idle: 0, running: 4, starting: 0, stopping: 0, retiring: 0, failed: 0 };
    refuseClaims(noIdleInstance({ name: 'small', env: 'web' }, counts));
    expect((await cliHere(['run', '--', 'true'], env)).stderr)
      .to.include('sandpool envs members update web small --max-replicas N')
      .and.not.include('pools update');
    refuseClaims(noIdleInstance({ name: 'shared', of: 'school/teacher' }, counts));
    expect((await cliHere(['run', '--', 'true'], env)).stderr).to.include(
      "or ask school/teacher, the pool's owner, to enlarge it",
    );
    refuseClaims(noIdleInstance({ name: 'p' }, { ...counts, running: 0 }));
    expect((await cliHere(['run', '--', 'true'], env)).stderr)
      .to.include('\n  enlarge the pool: sandpool pools update p --replicas N')
      .and.not.include('delete a sandbox');
  });

  it('ends with 125 and the reason if instances do not start', async () => {
    const counts = { idle: 0, running: 0, starting: 2, stopping: 0, retiring: 0, failed: 0 };
    refuseClaims(
      noIdleInstance({ name: 'default' }, counts, {
        reason: 'ImageUnavailable',
        message: 'ErrImagePull: the image does not exist',
      }),
    );
    const end = await cliHere(['run', '--', 'true'], env);
    expect(end.code).to.equal(125);
    expect(end.stderr)
      .to.include('its instances do not start: ErrImagePull: the image does not exist')
      .and.include('sandpool pools update default --image IMAGE')
      .and.not.include('delete a sandbox');
    refuseClaims(
      noIdleInstance({ name: 'default' }, counts, {
        reason: 'StartsFail',
        message: 'did not become ready within startupTimeout',
      }),
    );
    expect((await cliHere(['run', '--', 'true'], env)).stderr)
      .to.include(
        'fix the cause: sandpool pools update default --file FILE, or change its template',
      )
      .and.not.include('PUT');
  });

  it('ends with 125 without a command or with invalid options', async () => {
    for (const args of [
      ['run'],
      ['run', '--'],
      ['run', '--nonsense', '--', 'true'],
      ['run', '--idle-timeout', 'soon', '--', 'true'],
    ]) {
      const end = await cliHere(args, env);
      expect(end.code, args.join(' ')).to.equal(125);
      expect(end.stderr).to.not.equal('');
    }
    expect(daemon.operations.sandboxes.size).to.equal(0);
  });

  it('reports lack of memory', async () => {
    daemon.operations.driver.onExec = async () => ({ exitCode: 137, outOfMemory: true });
    const end = await cliHere(['run', '--', 'true'], env);
    expect([end.code, end.stderr]).to.deep.equal([
      137,
      'sandpool: the command was killed: the sandbox ran out of memory\n',
    ]);
  });

  it('gives the sandbox back if the command cannot be run', async () => {
    daemon.operations.driver.onExec = async () => {
      throw new Error('broken');
    };
    const end = await cliHere(['run', '--', 'true'], env);
    expect(end.code).to.equal(125);
    expect(end.stderr).to.match(/internal error \(INTERNAL\), request [\w.-]+/);
    expect(daemon.left()).to.deep.equal([]);
  });

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    it(`gives the sandbox back on ${signal} and ends with ${code}`, async () => {
      let running = false;
      daemon.operations.driver.onExec = async (_id, _request, abort) => {
        running = true;
        await once(abort, 'abort');
        throw new Error('the client left');
      };
      const { child, ended } = startCli(['run', '--', 'sleep', '60'], env);
      await eventually(() => running, 'the command runs');
      child.kill(signal);
      expect((await ended).code).to.equal(code);
      expect(daemon.operations.sandboxes.size).to.equal(1);
      expect(daemon.left()).to.deep.equal([]);
    });
  }

  it('gives the sandbox back if a signal arrived during its claim', async () => {
    const claim = daemon.operations.claimSandbox;
    let claimed = (): void => {};
    const asked = new Promise<void>((resolve) => {
      claimed = resolve;
    });
    let go = (): void => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    Object.assign(daemon.operations, {
      claimSandbox: async (...args: Parameters<typeof claim>) => {
        const view = await claim(...args);
        claimed();
        await held;
        return view;
      },
    });
    const { child, ended } = startCli(['run', '--', 'true'], env);
    await asked;
    child.kill('SIGINT');
    go();
    expect((await ended).code).to.equal(130);
    expect(daemon.left()).to.deep.equal([]);
  });

  /** Deleting waits until it is let go. */
  const heldDeletion = (): { readonly asked: Promise<void>; readonly go: () => void } => {
    const { deleteSandbox } = daemon.operations;
    let [ask, go] = [(): void => {}, (): void => {}];
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    Object.assign(daemon.operations, {
      deleteSandbox: async (...args: Parameters<typeof deleteSandbox>) => {
        ask();
        await held;
        return await deleteSandbox(...args);
      },
    });
    return { asked, go };
  };

  it('gives the sandbox back even if the signal comes twice at once', async () => {
    let running = false;
    daemon.operations.driver.onExec = async (_id, _request, abort) => {
      running = true;
      await once(abort, 'abort');
      throw new Error('the client left');
    };
    const { child, ended } = startCli(['run', '--', 'sleep', '60'], env);
    await eventually(() => running, 'the command runs');
    child.kill('SIGHUP');
    child.kill('SIGTERM');
    child.kill('SIGINT');
    expect((await ended).code).to.be.oneOf([129, 130, 143]);
    expect(daemon.left()).to.deep.equal([]);
  });

  it('ends at once, and names what is left, when a signal insists', async () => {
    const deletion = heldDeletion();
    const { child, ended, text } = startCli(['run', '--', 'true'], env);
    await deletion.asked;
    const repeat = setInterval(() => child.kill('SIGINT'), 200);
    const { code } = await ended;
    clearInterval(repeat);
    expect(code).to.equal(130);
    expect(text.stderr).to.include(`sandpool sandboxes delete ${daemon.left()[0]}`);
    deletion.go();
  });

  it('names the sandbox if it cannot be given back', async () => {
    Object.assign(daemon.operations, {
      deleteSandbox: async () => {
        throw new Error('no');
      },
    });
    const end = await cliHere(['run', '--', 'true'], env);
    const [left] = daemon.left();
    expect(end.code).to.equal(0);
    expect(end.stderr).to.include(`sandpool sandboxes delete ${left}`);
  });

  it('accepts that a sandbox has ended by itself', async () => {
    daemon.operations.driver.onExec = async () => {
      for (const id of daemon.left()) daemon.operations.driver.end(id);
      await daemon.operations.settled();
      return {
        stdout: Buffer.from('x'),
        stderr: Buffer.alloc(0),
        exitCode: 0,
        timedOut: false,
        truncated: true,
        durationMs: 1,
      };
    };
    const end = await cliHere(['run', '--', 'true'], env);
    expect(end).to.deep.equal({
      code: 0,
      stdout: 'x',
      stderr: 'sandpool: the output was cut off at 1 MiB\n',
    });
  });

  it('hides the key from other users of the machine', async () => {
    const key = readFileSync(`${daemon.dataDir}/keys/tenant.key`, 'utf8').trim();
    let commandLine = '';
    daemon.operations.driver.onExec = async () => {
      commandLine = readFileSync(`/proc/${running.child.pid}/cmdline`, 'utf8');
      return {
        stdout: Buffer.alloc(0),
        stderr: Buffer.alloc(0),
        exitCode: 0,
        timedOut: false,
        truncated: false,
        durationMs: 1,
      };
    };
    const running = startCli(['run', '--', 'true'], env);
    await running.ended;
    expect(commandLine).to.include('run').and.not.include(key);
  });

  describe('-t', () => {
    it('reports lack of memory', async () => {
      const end = await cliHere(['run', '-t', '--', 'sh', '-c', 'exit 137'], env);
      expect([end.code, end.stderr]).to.deep.equal([
        137,
        'sandpool: the command was killed: the sandbox ran out of memory\n',
      ]);
    });

    it("prints just the command's output, with any arguments, and ends with its exit code", async () => {
      const odd = [
        'a b',
        "it's",
        '"$HOME"',
        '`id`',
        '!!',
        'tab\there',
        'new\nline',
        'é✓',
        '%s',
        '\\n',
        '',
        '*',
      ];
      const run = startCliInTerminal(
        ['run', '-t', '--', 'sh', '-c', 'printf "[%s]" "$@"; exit 9', 'sh', ...odd],
        env,
      );
      expect(await run.ended).to.equal(9);
      const shown = run
        .output()
        .replace(/^[^]*?BEFORE\[.*?\]\r\n/, '')
        .replace(/AFTER\[[^]*$/, '');
      expect(shown).to.equal(odd.map((word) => `[${word.replace('\n', '\r\n')}]`).join(''));
      expect(terminalWasRestored(run.output())).to.equal(true);
      expect(daemon.left()).to.deep.equal([]);
    });

    it('ends with 127 if the command does not exist', async () => {
      const run = startCliInTerminal(['run', '-t', '--', 'no-such-command'], env);
      expect(await run.ended).to.equal(127);
      expect(run.output()).to.include('not found');
    });

    it('connects the command to this terminal', async () => {
      const run = startCliInTerminal(
        ['run', '-t', '--', 'sh', '-c', 'test -t 0 && stty size; read line; echo "got $line"'],
        env,
        { cols: 71, rows: 17 },
      );
      await run.shows('17 71');
      run.pty.write('typed\r');
      await run.shows('got typed');
      expect(await run.ended).to.equal(0);
    });

    it('refuses a command that is too long to be typed before it claims', async () => {
      const end = await cliHere(['run', '-t', '--', 'echo', 'x'.repeat(5_000)], env);
      expect(end.code).to.equal(125);
      expect(end.stderr).to.include('too long');
      expect(daemon.operations.sandboxes.size).to.equal(0);
    });
  });
});
