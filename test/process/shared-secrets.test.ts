import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatApiKey } from '../../src/model/api-key-text.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { authenticate } from '../../src/services/keys/authenticate.ts';
import { ensureAdminKey, readSharedSecrets } from '../../src/daemon/shared-secrets.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('the secrets shared by replicas', () => {
  const TEXT = { keyId: 'abcdefghijkl', secret: 'S'.repeat(43) };
  const KEY = formatApiKey(TEXT);
  const TENANT = { namespace: 'ns', team: 'default', user: 'default' };
  let folder: string;
  let store: MemoryApiKeys;
  let clock: TestClock;

  const write = (pepper: string, key: string): void => {
    writeFileSync(join(folder, 'pepper'), pepper);
    writeFileSync(join(folder, 'admin.key'), key);
  };
  const aReplica = async (): Promise<ApiKeyMirror> => {
    const apiKeys = new ApiKeyMirror({ apiKeys: store, clock, revocations: aCoordination(clock) });
    await apiKeys.start();
    return apiKeys;
  };
  const ensure = (apiKeys: ApiKeyMirror): Promise<void> =>
    ensureAdminKey({
      apiKeys,
      secrets: readSharedSecrets(folder),
      clock,
      lifetimeMs: 1_000,
      tenant: TENANT,
    });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-secrets-'));
    write(`${'0a'.repeat(32)}\n`, `${KEY}\n`);
    store = new MemoryApiKeys();
    clock = new TestClock();
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('make the admin key work on every replica, whichever comes first', async () => {
    const replicas = [await aReplica(), await aReplica()];
    await Promise.all(replicas.map(ensure));

    for (const apiKeys of [...replicas, await aReplica()]) {
      expect(
        authenticate({ apiKeys, pepper: readSharedSecrets(folder).pepper, clock })(KEY).role,
      ).to.equal('admin');
    }
    expect(await store.list()).to.have.length(1);
  });

  it('are renewed by a start in the second half of their life', async () => {
    const apiKeys = await aReplica();
    await ensure(apiKeys);
    const until = apiKeys.find(TEXT.keyId)?.expiresAt ?? 0;
    clock.advance(400);
    await ensure(apiKeys);
    expect(apiKeys.find(TEXT.keyId)?.expiresAt).to.equal(until);
    clock.advance(200);
    await ensure(apiKeys);
    expect(apiKeys.find(TEXT.keyId)?.expiresAt).to.equal(until + 600);
  });

  it('are refused with another pepper, or another key of that id', async () => {
    await ensure(await aReplica());
    write('0b'.repeat(32), KEY);
    expect((await rejection(ensure(await aReplica()))).message).to.include('pepper');
    write('0a'.repeat(32), formatApiKey({ ...TEXT, secret: 'T'.repeat(43) }));
    expect((await rejection(ensure(await aReplica()))).message).to.include('admin.key');
  });

  it('are named by file if missing or wrong, and never quoted', () => {
    for (const [pepper, key, named] of [
      ['secret-ish', KEY, 'pepper'],
      ['0a'.repeat(31), KEY, 'pepper'],
      ['0a'.repeat(32), `${KEY}x`, 'admin.key'],
    ] as const) {
      write(pepper, key);
      expect(() => readSharedSecrets(folder))
        .to.throw(join(folder, named))
        .and.satisfy(
          ({ message }: Error) => !message.includes('secret-ish') && !message.includes(TEXT.secret),
        );
    }
    rmSync(join(folder, 'pepper'));
    expect(() => readSharedSecrets(folder)).to.throw(
      /pepper can't be read: ENOENT; see docs\/kubernetes\.md/,
    );
  });
});
