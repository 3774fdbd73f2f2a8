import { expect } from 'chai';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { apiKeyPromotedElsewhere } from '../../src/model/fleet/cluster-refusals.ts';
import { createApiKey } from '../../src/services/keys/create-api-key.ts';
import { MOST_REVOKED, revokeApiKeys } from '../../src/services/keys/revoke-api-keys.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const OWNER = { namespace: 'team-blue', team: 'blue', user: 'ada' };

describe('a cascading revocation', () => {
  let clock: TestClock;
  let store: MemoryApiKeys;
  let apiKeys: ApiKeyMirror;
  let serial = 0;
  beforeEach(async () => {
    clock = new TestClock();
    store = new MemoryApiKeys();
    apiKeys = new ApiKeyMirror({ apiKeys: store, clock, revocations: aCoordination(clock) });
    await apiKeys.start();
  });

  const made = async (createdBy?: string): Promise<string> => {
    const keyId = `key${String((serial += 1)).padStart(13, '0')}`;
    const record: Omit<ApiKeyRecord, 'revision'> = {
      ...OWNER,
      keyId,
      shortName: keyId.toLowerCase(),
      role: 'user',
      description: '',
      hash: '',
      issuedAt: clock.now(),
      expiresAt: clock.now() + 1_000_000,
      ...(createdBy === undefined ? {} : { createdBy }),
    };
    await store.create(record);
    return keyId;
  };
  const revoke = (keyId: string): Promise<number> =>
    revokeApiKeys(apiKeys, { isMeant: (record) => record.keyId === keyId, cascade: true });
  const left = (): readonly string[] => [...store.records.keys()];

  it('leaves no key without its creator if it is interrupted, and resumes there', async () => {
    const first = await made();
    const [a, b] = [await made(first), await made(first)];
    for (const maker of [a, a, b]) await made(await made(maker));
    const all = store.records.size;

    for (let removed = 0; removed < all; removed += 1) {
      let more = 1;
      const { remove } = MemoryApiKeys.prototype;
      store.remove = async (record) => {
        if (more === 0) throw new Error('the store is away');
        more -= 1;
        await remove.call(store, record);
      };
      if (removed < all - 1)
        expect((await rejection(revoke(first))).message).to.equal('the store is away');
      else await revoke(first);
      const records = [...store.records.values()];
      for (const { createdBy } of records)
        expect(createdBy === undefined || store.records.has(createdBy)).to.equal(true);
    }

    expect([left(), apiKeys.size]).to.deep.equal([[], 0]);
    expect(await revoke(first)).to.equal(0);
  });

  it('includes keys that a revoked key creates in the meantime', async () => {
    const first = await made();
    const child = await made(first);
    const { remove } = MemoryApiKeys.prototype;
    store.remove = async (record) => {
      // on another replica, which has not heard of it
      if (record.keyId === first) await made(first);
      await remove.call(store, record);
      if (record.keyId === child) await made(child);
    };

    expect(await revoke(first)).to.equal(4);
    expect(left()).to.deep.equal([]);
  });

  const makerOf = (isLinked: boolean) =>
    createApiKey({
      apiKeys,
      clock,
      pepper: Buffer.alloc(32),
      namespaceOf: (team) => `team-${team}`,
      defaultLifetimeMs: 1_000,
      maxLifetimeMs: 1_000,
      creation: 'everyone',
      coordination: { expectUse: () => undefined },
      isLinked: () => isLinked,
    });

  it('is complete for a promoted key, which cannot create keys over a link', async () => {
    const own = await made();
    const caller = { ...OWNER, keyId: own, role: 'user' } as const;

    expect(await rejection(makerOf(true)(caller, {}))).to.have.property(
      'message',
      apiKeyPromotedElsewhere('this key can only create keys at its manager').message,
    );
    expect(left()).to.deep.equal([own]);
    await makerOf(false)(caller, {});
    expect(left()).to.have.length(2);
  });

  it('includes a key that its creator was creating when it was revoked', async () => {
    const first = await made();
    const create = makerOf(false);
    const stored = store.create.bind(store);
    store.create = async (record) => {
      await revoke(first);
      return await stored(record);
    };

    expect(await rejection(create({ ...OWNER, keyId: first, role: 'user' }, {}))).to.have.property(
      'code',
      'INVALID_API_KEY',
    );
    expect(left()).to.deep.equal([]);
  });

  it(`revokes ${MOST_REVOKED} keys per call, its own key last, and the rest in the next call`, async () => {
    const first = await made();
    for (let n = 0; n < MOST_REVOKED; n += 1) await made(first);

    expect(await rejection(revoke(first))).to.have.property('code', 'UNAVAILABLE');
    expect(left()).to.deep.equal([first]);
    expect(await revoke(first)).to.equal(1);
    await made();
    expect(store.records.size).to.equal(1);
  });
});
