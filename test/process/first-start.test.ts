import { mkdtempSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ensureFirstKeys, readOrMakePepper } from '../../src/daemon/first-start.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { authenticate } from '../../src/services/keys/authenticate.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';

const TENANT = { namespace: 'team-default', team: 'default', user: 'default' };
const clock = { time: 1_000_000, now: () => clock.time, at: () => () => {} };

describe('a start of the daemon', () => {
  let dataDir: string;
  let store: MemoryApiKeys;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-first-'));
    store = new MemoryApiKeys();
    clock.time = 1_000_000;
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  const pathOf = (name: string): string => join(dataDir, 'keys', name);
  const keyIn = (name: string): string => readFileSync(pathOf(name), 'utf8').trim();

  /** Returns what the requests of this run go through. */
  const start = async () => {
    const apiKeys = new ApiKeyMirror({ apiKeys: store, clock, revocations: aCoordination(clock) });
    await apiKeys.start();
    const pepper = readOrMakePepper(dataDir);
    await ensureFirstKeys({
      dataDir,
      apiKeys,
      pepper,
      now: clock.now(),
      lifetimeMs: 60_000,
      tenant: TENANT,
    });
    return authenticate({ apiKeys, pepper, clock });
  };

  it('creates key files that only their owner can read, and keeps valid ones', async () => {
    await start();
    const before = [keyIn('admin.key'), keyIn('tenant.key'), keyIn('pepper')];
    const ask = await start();
    expect([keyIn('admin.key'), keyIn('tenant.key'), keyIn('pepper')]).to.deep.equal(before);
    expect(
      ['admin.key', 'tenant.key', 'pepper'].map((name) => statSync(pathOf(name)).mode & 0o777),
    ).to.deep.equal([0o600, 0o600, 0o600]);
    expect([ask(keyIn('admin.key')).role, ask(keyIn('tenant.key')).role]).to.deep.equal([
      'admin',
      'user',
    ]);
  });

  it('renews the first keys in the second half of their life, before their creations end with them', async () => {
    await start();
    const kept = [keyIn('admin.key'), keyIn('tenant.key')];
    const ends = (): readonly number[] =>
      [...store.records.values()].map(({ expiresAt }) => expiresAt - 1_000_000);

    clock.time += 30_000;
    await start();
    expect(ends()).to.deep.equal([60_000, 60_000]);
    clock.time += 1;
    await start();

    expect(ends()).to.deep.equal([90_001, 90_001]);
    expect([keyIn('admin.key'), keyIn('tenant.key')]).to.deep.equal(kept);
  });

  it('creates new first keys if the pepper was lost, which invalidates all keys', async () => {
    await start();
    unlinkSync(pathOf('pepper'));
    const ask = await start();
    expect([ask(keyIn('admin.key')).role, ask(keyIn('tenant.key')).role]).to.deep.equal([
      'admin',
      'user',
    ]);
  });

  it('recreates a first key whose file is damaged or has another role', async () => {
    await start();
    writeFileSync(pathOf('tenant.key'), keyIn('admin.key'));
    writeFileSync(pathOf('admin.key'), 'spk_\n');
    const ask = await start();
    expect([ask(keyIn('admin.key')).role, ask(keyIn('tenant.key')).role]).to.deep.equal([
      'admin',
      'user',
    ]);
  });

  it('fails if the pepper is damaged', () => {
    readOrMakePepper(dataDir);
    writeFileSync(pathOf('pepper'), '');
    expect(() => readOrMakePepper(dataDir)).to.throw(/pepper is damaged: restore a backup/);
  });
});
