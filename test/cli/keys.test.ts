import { expect } from 'chai';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseApiKey } from '../../src/model/api-key-text.ts';
import { cliHere, onACliDaemon } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

describe('sandpool keys', () => {
  const { daemon, sandpool } = onACliDaemon();

  it('create prints the key only, for scripts, and its description on the other stream', async () => {
    const end = await sandpool('keys', 'create', 'ci', '--description', 'for ci');
    expect(end.code).to.equal(0);
    expect(end.stdout).to.match(/^spk_\w+\n$/);
    expect(end.stderr).to.match(
      /^sandpool: team-default\/ci, user of default\/default, until 2026-05-30T12:00:00Z\n$/,
    );
    expect(
      (
        await cliHere(['pools', 'list', '--server', daemon().url], {
          SANDPOOL_API_KEY: end.stdout.trim(),
        })
      ).code,
    ).to.equal(0);
  });

  it('create writes the key to a private file, and prints its id', async () => {
    const file = join(daemon().dataDir, 'ci.key');
    const end = await sandpool('keys', 'create', 'ci', '--to', file);
    expect(end.stdout).to.match(/^[0-9A-Za-z]{16}\n$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect((await sandpool('keys', 'list', '--key-file', file)).stdout).to.include(
      end.stdout.trim(),
    );
    expect(`${end.stdout}${end.stderr}`).to.not.include(readFileSync(file, 'utf8').trim());
  });

  it('create never overwrites a file, and explains how to revoke the lost key', async () => {
    const end = await sandpool('keys', 'create', '--to', join(daemon().dataDir, 'keys/tenant.key'));
    expect(end.code).to.equal(1);
    expect(end.stderr)
      .to.match(/can’t be written: EEXIST/)
      .and.match(/sandpool keys delete [0-9A-Za-z]{16}$/m);
  });

  it('mint prints a key without a daemon', async () => {
    const end = await cliHere(['keys', 'mint'], { SANDPOOL_DATA_DIR: '/no/such/folder' });
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    expect(parseApiKey(end.stdout.trim())).to.have.keys('keyId', 'secret');
  });

  it('create makes keys for other tenants, with the admin key of the data folder', async () => {
    const refused = await sandpool('keys', 'create', '--team', 'blue', '--user', 'ada');
    expect([refused.code, refused.stderr]).to.deep.equal([
      1,
      'sandpool: this operation needs a key with the admin role (ADMIN_REQUIRED)\n  use the admin key: --admin, or --key-file FILE\n',
    ]);
    const end = await sandpool(...line`keys create --admin --team blue --user ada -o json`);
    expect(JSON.parse(end.stdout)).to.include({ team: 'blue', user: 'ada', role: 'user' });
    expect(end.stderr).to.equal('');
    expect((await sandpool('keys', 'create', '--admin', '--team', 'blue')).stderr).to.include(
      'both --team and --user',
    );
  });

  it('create makes a key for each user in a file, and can be repeated with more', async () => {
    const [users, folder] = [join(daemon().dataDir, 'users.txt'), join(daemon().dataDir, 'class')];
    const create = (): ReturnType<typeof sandpool> =>
      sandpool('keys', 'create', '--admin', '--team', 'blue', '--users', users, '--to', folder);
    writeFileSync(users, '# first row\nada\n\nbob\n');
    expect((await create()).stdout).to.equal('ada.key\nbob.key\n');
    const key = join(folder, 'ada.key');
    expect(statSync(key).mode & 0o777).to.equal(0o600);
    const before = readFileSync(key, 'utf8');
    writeFileSync(users, 'ada\neve\n');
    expect((await create()).stdout).to.equal('ada.key already exists\neve.key\n');
    expect(readFileSync(key, 'utf8')).to.equal(before);
    expect((await sandpool('keys', 'list', '--key-file', key, '-o', 'json')).stdout).to.include(
      '"user": "ada"',
    );
  });

  it('create makes no keys from a file with an invalid user', async () => {
    const users = join(daemon().dataDir, 'users.txt');
    writeFileSync(users, 'ada\nAda Lovelace\n');
    const end = await sandpool(
      ...line`keys create --admin --team blue --users ${users} --to`,
      daemon().dataDir,
    );
    expect([end.code, end.stdout]).to.deep.equal([1, '']);
    expect(end.stderr).to.include('line 2: "Ada Lovelace" is not a valid user');
    expect((await sandpool('keys', 'create', '--admin', '--users', users)).stderr).to.include(
      '--users needs --team',
    );
  });

  it('promote reports a missing worker cluster or key', async () => {
    await sandpool('keys', 'create', 'ci');
    await sandpool('keys', 'create', 'mine', '--admin');
    for (const name of ['team-default/ci', 'mine']) {
      const end = await sandpool('keys', 'promote', name, '--admin');
      expect(end.code, name).to.equal(1);
      expect(end.stderr, name).to.match(
        /^sandpool: no worker cluster is connected \(CLUSTER_UNAVAILABLE\)/,
      );
    }
    expect((await sandpool('keys', 'promote', 'none/ci', '--admin')).stderr).to.include(
      'API_KEY_NOT_FOUND',
    );
    expect((await sandpool('keys', 'promote', 'team-default/ci')).stderr).to.include(
      'ADMIN_REQUIRED',
    );
  });

  it('list shows ids and names, more columns on request, and no secrets', async () => {
    const key = (await sandpool('keys', 'create', 'ci', '--description', 'for ci')).stdout.trim();
    const { stdout } = await sandpool('keys', 'list');
    expect(stdout.split('\n')[0]).to.match(/^KEY +NAME +ROLE +EXPIRES$/);
    expect(stdout).to.match(
      new RegExp(`^${key.split('_')[1] ?? ''} +team-default/ci +user +2026-05-30T12:00:00Z$`, 'm'),
    );
    const wide = (await sandpool('keys', 'list', '-o', 'wide')).stdout;
    expect(wide)
      .to.match(/ISSUED +CREATED BY +DESCRIPTION\n/)
      .and.match(/Z +[0-9A-Za-z]{16} +for ci$/m);
    for (const form of ['json', 'yaml'])
      expect((await sandpool('keys', 'list', '-o', form)).stdout).to.not.include(key);
  });

  it('list of all needs an admin', async () => {
    expect((await sandpool('keys', 'list', '--all')).code).to.equal(1);
    expect((await sandpool('keys', 'list', '--all', '--admin')).stdout).to.match(
      / team-ops\/k\d+ +admin /,
    );
  });

  it('delete revokes each named key, by its id or, for admins, by its name', async () => {
    const [first, second] = [
      (await sandpool('keys', 'create', 'a')).stdout.trim(),
      (await sandpool('keys', 'create', 'b')).stdout.trim(),
    ];
    const id = first.split('_')[1] ?? '';
    expect(await sandpool('keys', 'delete', id)).to.deep.equal({
      code: 0,
      stdout: `${id} deleted\n`,
      stderr: '',
    });
    expect((await sandpool('keys', 'delete', '--admin', 'team-default/b')).code).to.equal(0);
    for (const key of [first, second]) {
      const end = await cliHere(['pools', 'list', '--server', daemon().url], {
        SANDPOOL_API_KEY: key,
      });
      expect([end.code, end.stderr.split('\n')[0]]).to.deep.equal([
        1,
        'sandpool: invalid API key (INVALID_API_KEY)',
      ]);
    }
    expect((await sandpool('keys', 'delete', id)).stderr).to.include('API_KEY_NOT_FOUND');
  });

  it('no command sends the admin key of the data folder to another machine', async () => {
    const end = await sandpool('keys', 'list', '--admin', '--server', 'http://192.0.2.1:1');
    expect([end.code, end.stderr.split('\n')[0]]).to.deep.equal([
      1,
      'sandpool: no key for http://192.0.2.1:1',
    ]);
  });
});
