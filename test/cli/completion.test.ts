import { expect } from 'chai';
import { spawn as spawnPty } from 'node-pty';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { aCliDaemon, cliCommand, cliHere, type CliDaemon } from './cli-support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('completion', () => {
  let daemon: CliDaemon;
  before(async () => {
    daemon = await aCliDaemon();
  });
  after(() => daemon.close());

  const answer = async (...words: readonly string[]): Promise<readonly string[]> => {
    const end = await cliHere(['__complete', '--', ...words], {
      SANDPOOL_DATA_DIR: daemon.dataDir,
    });
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    return end.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t')[0] ?? '');
  };

  /** A TAB waits a moment for the daemon, and offers nothing where that has no time by then. */
  const offers = (names: readonly string[], ...words: readonly string[]): Promise<void> =>
    eventually(
      async () => isDeepStrictEqual(await answer(...words), names),
      `${words.join(' ')} offers ${names.join(' ')}`,
    );

  it('offers commands and subcommands', async () => {
    expect(await answer('')).to.include.members([
      'serve',
      'run',
      'sandboxes',
      'pools',
      'completion',
      'help',
    ]);
    expect(await answer('s')).to.deep.equal(['serve', 'shell', 'sandboxes', 'stats', 'stop']);
    expect(await answer('pools', 'g')).to.deep.equal(['get']);
    expect(await answer('help', 'poo')).to.deep.equal(['pools']);
  });

  it('offers options with descriptions, and the values of options with a choice', async () => {
    expect(await answer('sandboxes', 'list', '--p')).to.deep.equal(['--pool', '--phase']);
    expect(await answer('sandboxes', 'list', '--phase', 'R')).to.deep.equal(['Running']);
    expect(await answer('sandboxes', 'list', '--phase=R')).to.deep.equal(['--phase=Running']);
    expect(await answer('sandboxes', 'list', '--phase', '=', 'R')).to.deep.equal(['Running']);
    const { stdout } = await cliHere(['__complete', '--', 'pools', 'delete', '--f']);
    expect(stdout).to.equal('--force\tend its running sandboxes too\n');
  });

  it('offers the names of existing resources', async () => {
    const id = (
      await cliHere(['sandboxes', 'create'], { SANDPOOL_DATA_DIR: daemon.dataDir })
    ).stdout.trim();
    await offers(['default'], 'pools', 'get', '');
    await offers(['default'], 'run', '--pool', 'd');
    await offers([id], 'exec', '');
    await offers([id], 'sandboxes', 'delete', 'x', id.slice(0, 4));
    await offers(['pool', id], 'events', '');
    await offers(['default'], 'events', 'pool', '');
    await offers([`sandbox/${id}`], 'wait', 'sandbox/');
    await offers([':nospace', 'pool/'], 'wait', 'p');
    await eventually(async () => (await answer('keys', 'delete', '')).length === 1, 'its one key');
    await cliHere(['templates', 'create', '-f', 'config/templates/web.json', '--admin'], {
      SANDPOOL_DATA_DIR: daemon.dataDir,
    });
    await offers(['web'], 'templates', 'get', 'w');
    await offers(['web'], 'pools', 'create', 'big', '--template', 'w');
    await offers(['status', 'help'], 'pools', 'rollout', '');
    await offers(['default'], 'pools', 'rollout', 'status', '');
    daemon.operations.types.push({
      name: 'small',
      showName: 'Small',
      description: '',
      baseResources: { requests: {}, limits: {} },
      maxMultiplier: 4,
      extensions: {},
    });
    await offers(['small'], 'pools', 'create', '--instance-type', 's');
    await cliHere(['sandboxes', 'delete', id], { SANDPOOL_DATA_DIR: daemon.dataDir });
    expect(await answer('exec', '')).to.deep.equal([]);
  });

  it('asks the daemon named in the words', async () => {
    const words = ['__complete', '--', 'pools', 'get', '--data-dir', daemon.dataDir, ''];
    await eventually(
      async () => (await cliHere(words)).stdout === 'default\tReady, 2 idle\n',
      'it offers the pool',
    );
  });

  it('leaves files to the shell', async () => {
    expect(await answer('config', 'check', '')).to.deep.equal([':files']);
    expect(await answer('pools', 'list', '--key-file', '')).to.deep.equal([':files']);
    expect(await answer('pools', 'create', '-f', '')).to.deep.equal([':files']);
  });

  it('offers nothing for the arguments of a command, or if no word can follow', async () => {
    expect(await answer('run', '--', 'l')).to.deep.equal([]);
    expect(await answer('nonsense', '')).to.deep.equal([]);
    expect(await answer('pools', 'get', 'default', '')).to.deep.equal([]);
  });

  it('prints nothing while the daemon is unreachable, and does not wait for a hanging one', async () => {
    const none = { code: 0, stdout: '', stderr: '' };
    expect(
      await cliHere(['__complete', '--', 'pools', 'get', ''], { SANDPOOL_DATA_DIR: '/no/such' }),
    ).to.deep.equal(none);
    expect(
      await cliHere(['__complete', '--', 'pools', 'get', ''], {
        SANDPOOL_SERVER: 'http://127.0.0.1:1',
        SANDPOOL_API_KEY: 'k',
      }),
    ).to.deep.equal(none);
    const links = new Set<Socket>();
    const stuck = createServer((link) => links.add(link)).listen(0, '127.0.0.1');
    await eventually(() => stuck.listening, 'it listens');
    const address = stuck.address();
    const of = {
      SANDPOOL_SERVER: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
      SANDPOOL_API_KEY: 'k',
    };
    let hasEnded = false;
    const command = cliHere(['pools', 'list'], of).finally(() => {
      hasEnded = true;
    });
    expect(await cliHere(['__complete', '--', 'pools', 'get', ''], of)).to.deep.equal(none);
    expect(hasEnded, 'a command waits longer').to.equal(false);
    for (const link of links) link.destroy();
    expect((await command).code).to.not.equal(0);
    stuck.close();
  });

  describe('in a shell', function () {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'sandpool-shell-'));
      // Whoever is offered nothing where the daemon has no time presses TAB again, as this does.
      const run = `${cliCommand()
        .map((word) => `"${word}"`)
        .join(' ')} "$@"`;
      writeFileSync(
        join(folder, 'sandpool'),
        `#!/bin/sh\n[ "$1" = __complete ] || exec ${run}\n` +
          `until offered=$(${run}); [ -n "$offered" ]; do :; done\n` +
          `printf '%s\\n' "$offered"\n`,
      );
      chmodSync(join(folder, 'sandpool'), 0o755);
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    const ESCAPES = /\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07|\x07/g;
    const SHELLS = [
      [
        'bash',
        ['--norc', '--noprofile', '-i'],
        'PS1="READY> "; bind "set bell-style none"; source <(sandpool completion bash)',
      ],
      ['zsh', ['-f', '-i'], 'PS1="READY> "; source <(sandpool completion zsh)'],
      [
        'fish',
        ['--no-config', '-i'],
        'function fish_prompt; echo -n "READY> "; end; sandpool completion fish | source',
      ],
    ] as const;

    for (const [shell, args, setUp] of SHELLS) {
      it(`${shell} completes a command, an option and the name of a pool`, async function () {
        if (
          !(process.env['PATH'] ?? '')
            .split(delimiter)
            .some((path) => existsSync(join(path, shell)))
        )
          skipBecause(this, `${shell} is not installed`);
        const pty = spawnPty(shell, [...args], {
          cwd: ROOT,
          cols: 150,
          rows: 40,
          env: {
            PATH: `${folder}:${process.env['PATH'] ?? ''}`,
            HOME: folder,
            TERM: 'xterm',
            XDG_RUNTIME_DIR: folder,
            SANDPOOL_DATA_DIR: daemon.dataDir,
            OUT: join(folder, 'out'),
          },
        });
        let output = '';
        const ended = new Promise<void>((resolve) => {
          pty.onExit(() => resolve());
        });
        pty.onData((part) => {
          output += part;
        });
        const type = async (text: string, then: RegExp): Promise<void> => {
          output = '';
          pty.write(text);
          const shown = (): string => output.replaceAll(ESCAPES, '').replaceAll(/.\x08/g, '');
          await eventually(() => then.test(shown()), `${shell} shows ${String(then)}`).catch(
            (error: unknown) => {
              throw new Error(`it shows ${JSON.stringify(output.slice(-2_000))}`, { cause: error });
            },
          );
        };
        try {
          await type(`${setUp}; echo LOADED''\r`, /LOADED[\r\n][^]*READY> /);
          await type('sandpool poo\t', /pools /);
          await type('ge\t', /get /);
          await type('def\t', /default /);
          await type('--out\t', /--output /);
          await type('ya\t', /yaml /);
          await type('> "$OUT" 2>&1; echo DONE""\r', /DONE[\r\n]/);
          expect(readFileSync(join(folder, 'out'), 'utf8')).to.match(/^name: default$/m);
        } finally {
          pty.kill('SIGKILL');
          await ended;
        }
      });
    }
  });
});
