import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/daemon/config/config.ts';
import type { Finding } from '../../src/daemon/doctor/finding.ts';
import { brokenPools, keyEnds } from '../../src/daemon/doctor/service-checks.ts';

const DAY_MS = 24 * 3_600_000;

describe('the doctor with a running daemon', () => {
  let dataDir: string;
  let server: Server;
  /** What it answers, by path and query. */
  let answers: Readonly<Record<string, unknown>>;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-doctor-'));
    mkdirSync(join(dataDir, 'keys'));
    writeFileSync(join(dataDir, 'keys/admin.key'), 'admin-key\n');
    server = createServer(({ url = '', headers }, response) => {
      const isAdmin = headers['service-api-key'] === 'admin-key';
      response
        .writeHead(isAdmin ? 200 : 401)
        .end(JSON.stringify(answers[url] ?? { items: [], total: 0 }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    answers = {};
  });
  afterEach(() => {
    server.close();
    rmSync(dataDir, { recursive: true });
  });

  const found = async (check: typeof brokenPools, runs = true): Promise<readonly Finding[]> =>
    await check({
      config: loadConfig({ env: {}, argvOptions: { dataDir } }).config,
      daemon: runs
        ? {
            address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
            pid: 1,
            startTime: '1',
            bootId: 'b',
          }
        : undefined,
      bwrapPath: '',
      launcherPath: '',
      etc: '',
      uid: undefined,
    });

  it('counts the pools that cannot start instances, and names some', async () => {
    expect(await found(brokenPools)).to.deep.equal([
      { name: 'pools', status: 'ok', message: 'none is Failed or Degraded' },
    ]);
    answers = {
      '/sandboxpools?all=true&phase=Failed&limit=5': {
        items: [{ namespace: 'team-blue', name: 'shells' }],
        total: 1,
      },
      '/sandboxpools?all=true&phase=Degraded&limit=5': {
        items: ['a', 'b', 'c', 'd', 'e'].map((name) => ({ namespace: 'team-red', name })),
        total: 9,
      },
    };
    expect(await found(brokenPools)).to.deep.equal([
      {
        name: 'pools',
        status: 'warning',
        message:
          'pools that can’t start instances: 10 (team-blue/shells, team-red/a, team-red/b, team-red/c, team-red/d and others)',
        advice: 'see why: sandpool top --broken --admin',
      },
    ]);
  });

  it('counts the keys that expire soon, on every page', async () => {
    const aKey = (name: string, days: number, issued = -30) => ({
      name,
      issuedAt: new Date(Date.now() + issued * DAY_MS).toISOString(),
      expiresAt: new Date(Date.now() + days * DAY_MS).toISOString(),
    });
    answers = {
      '/admin/api-keys?limit=100&offset=0': {
        items: [aKey('long', 80), aKey('short', 3), aKey('of a day', 1, 0)],
        total: 101,
      },
      '/admin/api-keys?limit=100&offset=100': { items: [aKey('last', 13)], total: 101 },
    };
    const [finding] = await found(keyEnds);
    expect(finding).to.include({
      status: 'warning',
      message: 'API keys that expire within 14 days: 2 (short, last)',
    });
  });

  it('reports a refused admin key, and nothing without a daemon', async () => {
    writeFileSync(join(dataDir, 'keys/admin.key'), 'old-key');
    for (const check of [brokenPools, keyEnds]) {
      expect((await found(check)).map(({ status }) => status)).to.deep.equal(['warning']);
      expect(await found(check, false)).to.deep.equal([]);
    }
  });
});
