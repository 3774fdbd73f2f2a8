import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hash as quickHash } from '@node-rs/argon2';
import { controlCommands } from '../../src/daemon/commands/console-commands.ts';
import { ControlServer } from '../../src/daemon/control/control-server.ts';
import { commandDaemon } from '../../src/cli/common/control.ts';
import { operatorEntry } from '../../src/services/identity/operator-entry.ts';
import { OperatorsFile } from '../../src/services/identity/operators-file.ts';
import { argon2Passwords } from '../../src/services/identity/passwords.ts';
import { OperatorCommands } from '../../src/services/console/operator-commands.ts';
import { SessionCommands } from '../../src/services/console/session-commands.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

const PASSWORD = 'correct horse battery staple';

describe('passwords', () => {
  it('are hashed by argon2id, each with its own salt', async () => {
    const passwords = argon2Passwords();
    const [one, other] = [await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)];

    expect(one).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(other).to.not.equal(one);
    expect(await passwords.verify(PASSWORD, one)).to.equal(true);
    expect(await passwords.verify(`${PASSWORD}.`, one)).to.equal(false);
    expect(await passwords.verify('nobody has this password', undefined)).to.equal(false);
    expect(await passwords.verify(PASSWORD, '$argon2id$broken')).to.equal(false);
  });

  it('are checked a few at a time, with a queue of at most 64', async () => {
    const passwords = argon2Passwords();
    const hash = await quickHash(PASSWORD, { memoryCost: 8, timeCost: 1 });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 70 }, () => passwords.verify('wrong', hash)),
    );

    expect(outcomes.filter(({ status }) => status === 'rejected')).to.have.length(4);
  });
});

describe('the file of operators', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'operators-'));
    path = join(folder, 'keys', 'operators.json');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const ada = { name: 'ada', role: 'operator', users: ['ada-ci'], passwordHash: '$argon2id$x' };

  it('is private, and read again after a change', () => {
    const [one, other] = [new OperatorsFile(path), new OperatorsFile(path)];
    expect(other.list()).to.deep.equal([]);
    one.put({ ...ada, role: 'operator', addedAt: 'now' });
    one.lock('https://issuer.example#7');

    expect(statSync(path).mode & 0o777).to.equal(0o600);
    expect(other.find('ada')?.users).to.deep.equal(['ada-ci']);
    expect(other.isLocked('https://issuer.example#7')).to.equal(true);
    expect(one.unlock('https://issuer.example#7')).to.equal(true);
    expect(one.remove('ada')).to.equal(true);
    expect(one.remove('ada')).to.equal(false);
    expect(other.list()).to.deep.equal([]);
    expect(other.locked()).to.deep.equal([]);
  });

  for (const [what, text] of [
    ['no JSON', '{'],
    ['of another form', '{"operators": {}}'],
    ['with a password in clear', JSON.stringify({ operators: [{ ...ada, passwordHash: 'x' }] })],
    ['with an unknown field', JSON.stringify({ operators: [{ ...ada, admin: true }] })],
    ['with a name twice', JSON.stringify({ operators: [ada, { ...ada, role: 'admin' }] })],
    ['with the owner’s name', JSON.stringify({ operators: [{ ...ada, name: 'owner' }] })],
  ])
    it(`admits nobody if it is ${what}`, () => {
      mkdirSync(join(folder, 'keys'));
      writeFileSync(path, text ?? '');
      const operators = new OperatorsFile(path);

      for (const look of [() => operators.find('ada'), () => operators.isLocked('ada')])
        expect(look).to.throw(/nobody can log in/);
    });

  it('admits nobody if it cannot be searched', () => {
    mkdirSync(join(folder, 'keys'));
    symlinkSync(path, path);

    expect(() => new OperatorsFile(path).list()).to.throw(/nobody can log in/);
  });

  it('is changed over the control socket, and each change is audited', async () => {
    const operators = new OperatorsFile(path);
    const audit: string[] = [];
    const ended: string[] = [];
    const deps = {
      operators,
      entryOf: (given: unknown) => operatorEntry(given),
      sessions: {
        endConsoleSessionsOf: async (operator: string) => {
          ended.push(operator);
          return 1;
        },
      },
      clock: new TestClock(),
    };
    const sink = {
      note: (entry: object) => void audit.push(JSON.stringify(entry)),
      count: () => undefined,
    };
    const control = new ControlServer({
      dataDir: folder,
      backup: () => Promise.reject(new Error('none')),
      commands: controlCommands({
        changes: new OperatorCommands({ ...deps, change: operators }),
        sessions: new SessionCommands(aCoordination(deps.clock)),
        linkFor: async (as) => `http://localhost/console/link?token=of-${as ?? 'owner'}`,
        audit: sink,
      }),
      log: quietLog,
    });
    await control.start();
    try {
      const tell = (command: string, body: object) => commandDaemon(folder, command, body);
      const adding = { name: 'ada', role: 'admin', users: [], password: PASSWORD };
      expect(await tell('/operators/add', adding)).to.deep.equal({ name: 'ada', replaced: false });
      expect(await tell('/operators/add', adding)).to.include({ replaced: true });
      expect(
        (await rejection(tell('/operators/add', { ...adding, password: 'short' }))).message,
      ).to.contain('password: must have at least 12 characters');
      expect(
        (await rejection(tell('/operators/add', { ...adding, name: 'Ada' }))).message,
      ).to.contain('name: must be a DNS-1123 label');
      expect(await tell('/operators/lock', { identity: 'i#7' })).to.include({ sessionsEnded: 1 });
      expect(await tell('/operators/list', {})).to.deep.equal({
        operators: [{ name: 'ada', role: 'admin', users: [], locked: false }],
        locked: ['i#7'],
      });
      expect(await tell('/console/login', { as: 'ada' })).to.deep.equal({
        url: 'http://localhost/console/link?token=of-ada',
      });
      await tell('/operators/remove', { name: 'ada' });
      expect((await rejection(tell('/operators/remove', { name: 'ada' }))).message).to.contain(
        'there is no operator ada',
      );
    } finally {
      await control.stop();
    }

    expect(ended).to.deep.equal(['ada', 'ada', 'i#7', 'ada']);
    expect(audit).to.have.length(8);
    expect(audit.join()).to.not.contain(PASSWORD).and.to.not.contain('argon2');
  });

  it('is read-only on Kubernetes, and the daemon explains how to change it', async () => {
    const commands = new OperatorCommands({
      operators: new OperatorsFile(path),
      change: undefined,
      entryOf: (given) => operatorEntry(given),
      sessions: { endConsoleSessionsOf: async () => 0 },
      clock: new TestClock(),
    });

    expect((await rejection(commands.lock('ada'))).message).to.contain('operators.json');
  });
});
