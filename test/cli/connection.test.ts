import { expect } from 'chai';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { aCliDaemon, cliHere, type CliDaemon } from './cli-support.ts';

describe('the search for the daemon and the key', () => {
  let daemon: CliDaemon;
  beforeEach(async () => {
    daemon = await aCliDaemon();
  });
  afterEach(() => daemon.close());

  const LIST = ['pools', 'list'];
  const key = (name: string): string => join(daemon.dataDir, 'keys', `${name}.key`);

  it('uses the data folder of --data-dir, or else of SANDPOOL_DATA_DIR', async () => {
    expect((await cliHere(LIST, { SANDPOOL_DATA_DIR: daemon.dataDir })).code).to.equal(0);
    expect(
      (await cliHere([...LIST, '--data-dir', daemon.dataDir], { SANDPOOL_DATA_DIR: '/nowhere' }))
        .code,
    ).to.equal(0);
  });

  it('warns in time that the key expires, next to the output', async () => {
    const DAY = 24 * 3_600_000;
    const { operations } = daemon;
    operations.clock.advance(Date.now() - 30 * DAY - operations.clock.now());
    const ending = join(daemon.dataDir, 'ending.key');
    writeFileSync(ending, await operations.key('default', 'default', 'user', 40 * DAY), {
      mode: 0o600,
    });
    operations.clock.advance(30 * DAY);
    const env = { SANDPOOL_DATA_DIR: daemon.dataDir };
    const { code, stdout, stderr } = await cliHere([...LIST, '--key-file', ending], env);

    expect(stderr).to.match(
      /^sandpool: this API key expires at \d{4}-\S+Z; create another key in time\n$/,
    );
    expect({ code, stdout }).to.deep.include({
      code: 0,
      stdout: (await cliHere(LIST, env)).stdout,
    });
  });

  it('prefers the address of --server or SANDPOOL_SERVER to the data folder', async () => {
    rmSync(join(daemon.dataDir, 'daemon.json'));
    expect(
      (
        await cliHere([...LIST, '--server', daemon.url], {
          SANDPOOL_DATA_DIR: daemon.dataDir,
          SANDPOOL_SERVER: 'http://127.0.0.1:1',
        })
      ).code,
    ).to.equal(0);
    expect(
      (await cliHere(LIST, { SANDPOOL_DATA_DIR: daemon.dataDir, SANDPOOL_SERVER: daemon.url }))
        .code,
    ).to.equal(0);
  });

  it('takes the key from --key-file, then SANDPOOL_API_KEY, then SANDPOOL_API_KEY_FILE', async () => {
    const env = { SANDPOOL_SERVER: daemon.url, SANDPOOL_DATA_DIR: '/nowhere' };
    const secret = readFileSync(key('tenant'), 'utf8').trim();
    expect(
      (await cliHere([...LIST, '--key-file', key('tenant')], { ...env, SANDPOOL_API_KEY: 'wrong' }))
        .code,
    ).to.equal(0);
    expect(
      (await cliHere(LIST, { ...env, SANDPOOL_API_KEY: secret, SANDPOOL_API_KEY_FILE: '/nowhere' }))
        .code,
    ).to.equal(0);
    expect((await cliHere(LIST, { ...env, SANDPOOL_API_KEY_FILE: key('tenant') })).code).to.equal(
      0,
    );
  });

  it('has no option for the key itself', async () => {
    for (const command of [
      ['run'],
      ['exec'],
      ['shell'],
      ['pools', 'list'],
      ['sandboxes', 'list'],
      ['serve'],
    ]) {
      expect((await cliHere([...command, '--help'])).stdout).to.not.match(
        /--(api-)?key[ =]<(?!file)/,
      );
    }
  });

  it('explains how to start a daemon if none is running', async () => {
    rmSync(join(daemon.dataDir, 'daemon.json'));
    const { code, stderr } = await cliHere(LIST, { SANDPOOL_DATA_DIR: daemon.dataDir });
    expect(code).to.equal(1);
    expect(stderr)
      .to.include(`no daemon is running on the data folder ${daemon.dataDir}`)
      .and.include('script/server')
      .and.include('sandpool serve');
  });

  it('ignores the note of a dead daemon', async () => {
    const note = JSON.parse(readFileSync(join(daemon.dataDir, 'daemon.json'), 'utf8'));
    writeFileSync(join(daemon.dataDir, 'daemon.json'), JSON.stringify({ ...note, startTime: '1' }));
    expect((await cliHere(LIST, { SANDPOOL_DATA_DIR: daemon.dataDir })).stderr).to.include(
      'no daemon is running',
    );
  });

  it('reports that nothing listens at the address', async () => {
    const [port] = await freePorts(1);
    const address = `http://127.0.0.1:${port}`;
    const { code, stderr } = await cliHere([...LIST, '--server', address], {
      SANDPOOL_API_KEY: 'k',
    });
    expect(code).to.equal(1);
    expect(stderr).to.include(`cannot connect to ${address}`).and.include('script/server');
  });

  it('explains the remedy for a rejected key', async () => {
    const { code, stderr } = await cliHere(LIST, {
      SANDPOOL_DATA_DIR: daemon.dataDir,
      SANDPOOL_API_KEY: 'spk_wrong',
    });
    expect(code).to.equal(1);
    expect(stderr).to.include('invalid API key').and.include('--key-file');
  });

  it('reports a key file that is missing or empty', async () => {
    const env = { SANDPOOL_DATA_DIR: daemon.dataDir };
    expect((await cliHere([...LIST, '--key-file', '/nowhere/a.key'], env)).stderr).to.include(
      '/nowhere/a.key does not exist',
    );
    writeFileSync(key('tenant'), 'two words\n');
    expect((await cliHere(LIST, env)).stderr).to.include('there is no API key in');
    for (const wrong of ['two words', 'clé', 'a\nb']) {
      const { code, stderr } = await cliHere(LIST, { ...env, SANDPOOL_API_KEY: wrong });
      expect(code, wrong).to.equal(1);
      expect(stderr, wrong)
        .to.include('there is no API key in SANDPOOL_API_KEY')
        .and.not.include('Invalid value');
    }
    rmSync(key('tenant'));
    expect((await cliHere(LIST, env)).stderr).to.include('tenant.key does not exist');
  });

  it("never sends the local daemon's key to another machine", async () => {
    const { code, stderr } = await cliHere([...LIST, '--server', 'http://sandpool.example:8080'], {
      SANDPOOL_DATA_DIR: daemon.dataDir,
    });
    expect(code).to.equal(1);
    expect(stderr).to.include('no key for http://sandpool.example:8080');
  });

  it("refuses an address that is not a server's URL", async () => {
    for (const server of ['nonsense', 'ftp://x', 'http://user:pw@x', 'http://x/?y']) {
      const { code, stderr } = await cliHere([...LIST, '--server', server], {
        SANDPOOL_API_KEY: 'k',
      });
      expect(code, server).to.equal(1);
      expect(stderr).to.include('must be an http or https URL');
    }
  });
});
