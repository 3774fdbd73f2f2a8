import { expect } from 'chai';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMANDS as ENTRIES } from '../../src/cli/command-table.ts';
import { aCliDaemon, cliCommand, cli, cliHere } from './cli-support.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMMANDS = [
  ['serve'],
  ['run'],
  ['exec'],
  ['shell'],
  ['stop'],
  ['config', 'print'],
  ['config', 'check'],
  ['wait'],
  ['completion'],
  ['cp'],
  ['backup'],
  ['restore'],
  ['doctor'],
  ['logs'],
  ['events'],
  ...['list', 'create', 'delete', 'promote', 'mint'].map((name) => ['keys', name]),
  ...['get', 'set'].map((name) => ['quotas', name]),
  ...['list', 'get', 'create', 'delete'].map((name) => ['sandboxes', name]),
  ...['list', 'get', 'create', 'update', 'sync-template', 'delete'].map((name) => ['pools', name]),
  ['pools', 'rollout', 'status'],
  ...['list', 'get', 'create', 'update', 'delete', 'sync', 'status', 'explain'].map((name) => [
    'envs',
    name,
  ]),
  ...['list', 'add', 'update', 'remove'].map((name) => ['envs', 'members', name]),
  ...['list', 'get', 'set', 'delete', 'decisions'].map((name) => ['envs', 'groups', name]),
  ...['list', 'get', 'create', 'update', 'delete'].map((name) => ['templates', name]),
  ['instance-types'],
  ['volumes'],
  ...['list', 'join-token'].map((name) => ['clusters', name]),
  ['nodes', 'drain'],
  ['features'],
  ['stats'],
];

describe('the command line', function () {
  for (const command of COMMANDS) {
    it(`shows help with examples for ${command.join(' ')}`, async () => {
      const end = await cliHere([...command, '--help']);
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(end.stdout)
        .to.include(`Usage: sandpool ${command.join(' ')}`)
        .and.match(/Examples:\n {2}\$ /);
    });
  }

  it('fails if its output cannot be written, for example on a full disk', () => {
    const words = cliCommand().map((word) => `'${word}'`);
    const end = spawnSync('/bin/sh', ['-c', `${words.join(' ')} --help >/dev/full`], {
      encoding: 'utf8',
    });
    expect([end.status, end.stderr]).to.deep.equal([
      1,
      'sandpool: the output can’t be written: ENOSPC: no space left on device, write\n',
    ]);
  });

  it('lists its commands and examples', async () => {
    const end = await cliHere(['--help']);
    expect(end.code).to.equal(0);
    for (const name of ['serve', 'run', 'exec', 'shell', 'sandboxes', 'pools', 'stop'])
      expect(end.stdout).to.match(new RegExp(`^ {2}${name} `, 'm'));
    expect(end.stdout).to.include('Examples:');
  });

  for (const entry of ENTRIES) {
    it(`describes ${entry.name} in the list of commands and in its own help alike`, async () => {
      const command = await entry.load({
        action: () => async () => {},
        serviceAction: () => async () => {},
      });
      expect([command.name(), command.summary() || command.description()]).to.deep.equal([
        entry.name,
        entry.summary,
      ]);
    });
  }

  it('shows the help of a command by help COMMAND', async () => {
    expect((await cliHere(['help', 'run'])).stdout).to.equal(
      (await cliHere(['run', '--help'])).stdout,
    );
  });

  it('shows its version and commit', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const { code, stdout, stderr } = await cli(['--version']);
    expect([code, stderr]).to.deep.equal([0, '']);
    const [, of, commit = '', date] = /^(\S+)\+(\S+) \((\S+)\)\n$/.exec(stdout) ?? [];
    expect(of).to.equal(version);
    expect(
      execFileSync('git', ['cat-file', '-t', commit.replace('-changed', '')], { cwd: ROOT }),
    ).to.be.instanceOf(Buffer);
    expect(date).to.match(/^\d{4}-\d\d-\d\d$/);
  });

  for (const [args, code] of [
    [['nonsense'], 2],
    [[], 2],
    [['--nonsense'], 2],
    [['pools'], 2],
    [['pools', 'nonsense'], 2],
    [['pools', 'list', '--nonsense'], 2],
    [['pools', 'rollout'], 2],
    [['pools', 'rollout', 'status'], 2],
    [['pools', 'update', 'p', '--replicas', 'many'], 2],
    [['pools', 'update', 'p', '--multiplier', '0'], 2],
    [['pools', 'create', 'p', '--auto-update', 'perhaps'], 2],
    [['templates'], 2],
    [['envs'], 2],
    [['envs', 'members'], 2],
    [['envs', 'groups', 'set'], 2],
    [['templates', 'create'], 2],
    [['features', 'more'], 2],
    [['sandboxes', 'get'], 2],
    [['sandboxes', 'list', '--phase', 'Odd'], 2],
    [['sandboxes', 'list', '-o', 'xml'], 2],
    [['stop', '--nonsense'], 2],
    [['wait', 'pool/x'], 2],
    [['wait', 'pool/x', '--for', 'odd'], 2],
    [['keys'], 2],
    [['serve', '--nonsense'], 2],
    [['pools', 'get', 'a', 'b'], 2],
    [['run', '--nonsense'], 125],
    [['exec'], 125],
    [['shell', '--nonsense'], 125],
    [['shell', 'a', 'b'], 125],
  ] as const) {
    it(`ends with ${code} for: sandpool ${args.join(' ')}`, async () => {
      const end = await cliHere(args);
      expect(end.code).to.equal(code);
      expect(end.stdout).to.equal('');
      expect(end.stderr).to.not.equal('');
    });
  }

  it('handles a reader that leaves', async () => {
    const daemon = await aCliDaemon();
    const child = spawn(
      '/bin/sh',
      [
        '-c',
        `${cliCommand()
          .map((word) => `"${word}"`)
          .join(' ')} run -- sh -c 'head -c 500000 /dev/zero | tr "\\0" x' | head -c 1`,
      ],
      {
        cwd: ROOT,
        env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), SANDPOOL_DATA_DIR: daemon.dataDir },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const text = { stdout: '', stderr: '' };
    child.stdout.on('data', (part: Buffer) => {
      text.stdout += part.toString();
    });
    child.stderr.on('data', (part: Buffer) => {
      text.stderr += part.toString();
    });
    await once(child, 'close');
    expect(text).to.deep.equal({ stdout: 'x', stderr: '' });
    expect(daemon.left()).to.deep.equal([]);
    await daemon.close();
  });

  describe('bin/sandpool', () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'sandpool-bin-'));
      mkdirSync(join(folder, 'bin'));
      cpSync(join(ROOT, 'bin/sandpool'), join(folder, 'bin/sandpool'));
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    const start = async (): Promise<{ readonly code: number | null; readonly text: string }> => {
      const child = spawn(join(folder, 'bin/sandpool'), ['a', 'b'], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (part: Buffer) => {
          text += part.toString();
        });
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, text };
    };

    it('explains how to build the command line if it is missing', async () => {
      const { code, text } = await start();
      expect(code).to.equal(125);
      expect(text)
        .to.include('not built yet')
        .and.include(`${folder}/script/server`)
        .and.include('npm run build');
    });

    it('runs the built command line with its arguments', async () => {
      mkdirSync(join(folder, 'dist/cli'), { recursive: true });
      writeFileSync(
        join(folder, 'dist/cli/main.js'),
        'console.log(process.argv.slice(2).join()); process.exitCode = 3;',
      );
      expect(await start()).to.deep.equal({ code: 3, text: 'a,b\n' });
    });
  });
});
