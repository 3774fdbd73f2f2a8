import { expect } from 'chai';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ControlServer } from '../../src/daemon/control/control-server.ts';
import { controlCommands } from '../../src/daemon/commands/console-commands.ts';
import { operatorEntry } from '../../src/services/identity/operator-entry.ts';
import { OperatorsFile } from '../../src/services/identity/operators-file.ts';
import { OperatorCommands } from '../../src/services/console/operator-commands.ts';
import { SessionCommands } from '../../src/services/console/session-commands.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { cli, cliHere, startCliInTerminal, terminalWasRestored } from './cli-support.ts';

const PASSWORD = 'correct horse battery staple';

describe('sandpool operators, sandpool console', function () {
  let dataDir: string;
  let control: ControlServer;
  let operators: OperatorsFile;
  const clock = new TestClock();
  const sessions = aCoordination(clock);
  let env: Readonly<Record<string, string>>;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'operators-'));
    env = { SANDPOOL_DATA_DIR: dataDir };
    operators = new OperatorsFile(join(dataDir, 'keys', 'operators.json'));
    const quick = {
      hash: async (password: string) => `$argon2id$${Buffer.from(password).toString('hex')}`,
      verify: async () => false,
    };
    control = new ControlServer({
      dataDir,
      backup: () => Promise.reject(new Error('none')),
      commands: controlCommands({
        changes: new OperatorCommands({
          operators,
          change: operators,
          entryOf: (given) => operatorEntry(given, quick),
          sessions: { endConsoleSessionsOf: async () => 2 },
          clock,
        }),
        sessions: new SessionCommands(sessions),
        linkFor: async (as) => `http://localhost:8080/console/link?token=${as ?? 'owner'}`,
        audit: undefined,
      }),
      log: quietLog,
    });
    await control.start();
  });
  after(async () => {
    await control.stop();
    rmSync(dataDir, { recursive: true });
  });
  afterEach(() => rmSync(join(dataDir, 'keys'), { recursive: true, force: true }));

  const hashOf = (name: string): string =>
    Buffer.from(operators.find(name)?.passwordHash.slice(10) ?? '', 'hex').toString();

  it('reads a password from the first line of the standard input', async () => {
    const added = await cli(
      ['operators', 'add', 'ada', '--role', 'admin', '--user', 'ada-ci'],
      env,
      `${PASSWORD}\r\nmore`,
    );

    expect(added).to.include({ code: 0, stdout: 'ada is added\n', stderr: '' });
    expect(hashOf('ada')).to.equal(PASSWORD);
    expect(operators.find('ada')).to.deep.include({ role: 'admin', users: ['ada-ci'] });
  });

  it('asks for a password twice on a terminal, without an echo', async () => {
    const terminal = startCliInTerminal(['operators', 'add', 'ada'], env);
    await terminal.shows('Password: ');
    terminal.pty.write(`${PASSWORD}x\u007f\r`);
    await terminal.shows('Again: ');
    terminal.pty.write(`${PASSWORD}\r`);
    await terminal.shows('ada is added');

    expect(await terminal.ended).to.equal(0);
    expect(terminal.output()).to.not.contain('horse');
    expect(terminalWasRestored(terminal.output())).to.equal(true);
    expect(hashOf('ada')).to.equal(PASSWORD);
  });

  it('refuses a password as an argument, a short one and an empty one', async () => {
    const asArgument = await cliHere(['operators', 'add', 'ada', '--password', PASSWORD], env);
    const none = await cliHere(['operators', 'add', 'ada'], env);

    expect(asArgument.code).to.equal(2);
    expect(none.code).to.equal(1);
    expect(none.stderr).to.contain('there is no password on standard input');
    expect(operators.list()).to.deep.equal([]);
  });

  it('lists, locks, unlocks and removes', async () => {
    await cli(['operators', 'add', 'ada'], env, PASSWORD);
    const run = async (...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await cliHere(['operators', ...args], env);
      return stdout + stderr;
    };
    const issuer = 'https://login.example.com#7';

    expect(await run('lock', 'ada')).to.equal('ada is locked; sessions ended: 2\n');
    await run('lock', issuer);
    expect(await run('list')).to.equal(
      [
        'NAME                         ROLE      USERS  STATUS',
        'ada                          operator  ada    locked',
        `${issuer}  -         -      locked`,
        '',
      ].join('\n'),
    );
    expect(await run('unlock', 'ada')).to.equal('ada is no longer locked\n');
    expect(await run('remove', 'ada')).to.equal('ada is removed; sessions ended: 2\n');
    expect(await run('remove', 'ada')).to.contain('there is no operator ada');
    await run('unlock', issuer);
    expect(await run('list')).to.contain('no operators yet');
  });

  it('prints an entry for a Secret that operators.json accepts', async () => {
    const { stdout } = await cli(['operators', 'entry', 'ada', '--role', 'viewer'], {}, PASSWORD);
    mkdirSync(join(dataDir, 'keys'));
    writeFileSync(join(dataDir, 'keys', 'operators.json'), stdout);

    expect(operators.find('ada')).to.include({ role: 'viewer' });
    expect(operators.find('ada')?.passwordHash).to.match(/^\$argon2id\$v=19\$/);
    expect(readFileSync(join(dataDir, 'keys', 'operators.json'), 'utf8')).to.not.contain('horse');
  });

  it("lists console sessions, and ends one, one person's, and all", async () => {
    const value = {
      name: 'Ada \u001b[31m',
      method: 'password',
      address: '192.0.2.1',
      role: 'admin',
    };
    const open = (id: string, operator: string) =>
      sessions.openConsoleSession({
        id,
        operator,
        value: JSON.stringify({ ...value, of: 'mark of a password' }),
        idleMs: 60_000,
        lifeMs: 600_000,
        replaces: undefined,
      });
    const run = (...args: readonly string[]) => cliHere(['console', ...args], env);
    await open('one', 'ada');
    clock.advance(1_000);
    for (const id of ['two', 'three']) await open(id, 'bob');
    await open('four', 'carl');

    const list = (await run('sessions')).stdout;
    expect(list.split('\n').map((line) => line.split(/ +/).slice(0, 4))).to.deep.include.members([
      ['SESSION', 'OPERATOR', 'BY', 'FROM'],
      ['one', 'ada', 'password', '192.0.2.1'],
    ]);
    const told = (await run('sessions', '-o', 'json')).stdout;
    expect(told).to.include('"openedAt": "2026-01-01T00:00:01.000Z"').and.not.include('mark of');
    expect((await run('end-session', 'one')).stdout).to.equal('one has ended\n');
    expect((await run('end-session', 'one')).stderr).to.include('there is no session one');
    expect((await run('end-sessions', '--of', 'bob')).stdout).to.equal('sessions ended: 2\n');
    expect((await run('end-sessions')).stdout).to.equal('sessions ended: 1\n');
    expect((await run('sessions')).stdout).to.equal('nobody is logged in\n');
  });

  it('prints a login link, for an operator with --as', async () => {
    expect((await cliHere(['console', 'login'], env)).stdout).to.equal(
      'http://localhost:8080/console/link?token=owner\n',
    );
    expect((await cliHere(['console', 'login', '--as', 'ada'], env)).stdout).to.equal(
      'http://localhost:8080/console/link?token=ada\n',
    );
    mkdirSync(join(dataDir, 'keys'));
    const elsewhere = await cliHere(['console', 'login', '--data-dir', join(dataDir, 'keys')]);
    expect(elsewhere.code).to.equal(1);
    expect(elsewhere.stderr).to.contain('no daemon is running on the data folder');
  });
});
