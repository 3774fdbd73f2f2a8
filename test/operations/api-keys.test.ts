import { expect } from 'chai';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { formatApiKey } from '../../src/model/api-key-text.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { mintApiKey } from '../../src/services/keys/mint-api-key.ts';
import { apiKeyNamed } from '../../src/services/keys/list-api-keys.ts';
import { authenticate, authentication } from '../../src/services/keys/authenticate.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { rejection } from '../support/harness/rejection.ts';

const PEPPER = Buffer.alloc(32, 1);
const TENANT: Tenant = { namespace: 'team-blue', team: 'blue', user: 'ada' };

describe('API keys', () => {
  const clock = { time: 1_000_000, now: () => clock.time, at: () => () => {} };
  let store: MemoryApiKeys;
  let mirror: ApiKeyMirror;
  let serial = 0;
  beforeEach(() => {
    clock.time = 1_000_000;
    store = new MemoryApiKeys();
    mirror = new ApiKeyMirror({ apiKeys: store, clock, revocations: aCoordination(clock) });
  });

  const minted = (lifetimeMs = 1_000) =>
    mintApiKey(
      {
        tenant: TENANT,
        role: 'user',
        shortName: `k${(serial += 1)}`,
        description: 'd',
        issuedAt: clock.time,
        expiresAt: clock.time + lifetimeMs,
      },
      PEPPER,
    );

  it('are stored without their secret', () => {
    const { apiKey, record } = minted();
    const secret = apiKey.split('_')[2]!;
    expect(JSON.stringify(record)).not.to.contain(secret.slice(0, 10));
    expect(record.hash).to.match(/^[0-9a-f]{64}$/);
    expect(apiKey.split('_')[1]).to.equal(record.keyId);
  });

  it('that live for four weeks or longer are warned about before they expire, by role', async () => {
    const WEEK = 7 * 24 * 60 * 60_000;
    for (const lifetimeMs of [6 * WEEK, 5 * WEEK, 3 * WEEK])
      await mirror.create(minted(lifetimeMs).record);

    clock.time += 4 * WEEK;
    expect([...mirror.nextEnds()]).to.deep.equal([['user', WEEK]]);
    clock.time += WEEK;
    expect([...mirror.nextEnds()]).to.deep.equal([['user', WEEK]]);
    clock.time += WEEK;
    expect([...mirror.nextEnds()]).to.deep.equal([]);
  });

  it('remain valid after a restart, with one list call to the store', async () => {
    const { apiKey, record } = minted();
    await mirror.create(record);
    const restarted = new ApiKeyMirror({
      apiKeys: store,
      clock,
      revocations: aCoordination(clock),
    });
    await restarted.start();
    const ask = authenticate({ apiKeys: restarted, pepper: PEPPER, clock });
    expect(ask(apiKey)).to.deep.equal({ keyId: record.keyId, ...TENANT, role: 'user' });
    expect(() => ask('spk_x')).to.throw(Refusal, 'invalid API key');
    expect(store.reads).to.equal(1);
  });

  it('are invalid if they were revoked while the watch was interrupted', async () => {
    const [revoked, good] = [minted(), minted()];
    let missed = (): void => undefined;
    const revocations = {
      publishRevocation: () => undefined,
      subscribeRevocations: (_: unknown, report?: () => void) => {
        missed = report ?? missed;
        return () => undefined;
      },
    };
    const due: (() => void)[] = [];
    const deaf = new ApiKeyMirror({
      apiKeys: store,
      clock: {
        now: () => clock.time,
        at: (_, call) => {
          due.push(call);
          return () => undefined;
        },
      },
      revocations,
    });
    await deaf.start();
    for (const { record } of [revoked, good]) await deaf.create(record);
    store.records.delete(revoked.record.keyId); // and the watch does not tell of it
    const { list } = store;
    store.list = async () => {
      throw new Error('out of reach');
    };

    missed();
    await settled();
    store.list = list;
    for (const call of due.splice(0)) call();
    await settled();

    expect([deaf.find(revoked.record.keyId), deaf.find(good.record.keyId)?.keyId]).to.deep.equal([
      undefined,
      good.record.keyId,
    ]);
    expect(due).to.deep.equal([]);
  });

  it('are invalid under another pepper', async () => {
    const { apiKey, record } = minted();
    await mirror.create(record);
    const ask = authenticate({ apiKeys: mirror, pepper: Buffer.alloc(32, 2), clock });
    expect(() => ask(apiKey)).to.throw(Refusal, 'invalid API key');
  });

  it('are invalid before they are stored', async () => {
    const { record } = minted();
    const failing = new ApiKeyMirror({
      apiKeys: Object.assign(store, {
        create: async () => {
          throw new Error('disk full');
        },
      }),
      clock,
      revocations: aCoordination(clock),
    });
    expect((await rejection(failing.create(record))).message).to.equal('disk full');
    expect(failing.find(record.keyId)).to.equal(undefined);
  });

  it('are invalid from their revocation on, even if the store cannot confirm the removal', async () => {
    const { apiKey, record } = minted();
    const created = await mirror.create(record);
    store.remove = async () => {
      throw new OutcomeUnknown('no answer');
    };
    const ask = authenticate({ apiKeys: mirror, pepper: PEPPER, clock });
    const removal = rejection(mirror.remove(created));
    expect(() => ask(apiKey)).to.throw(Refusal, 'invalid API key');
    expect(await removal).to.be.instanceOf(OutcomeUnknown);
    expect(() => ask(apiKey)).to.throw(Refusal, 'invalid API key');
  });

  it('remain valid if the store reports that the removal failed', async () => {
    const { apiKey, record } = minted();
    const created = await mirror.create(record);
    store.remove = async () => {
      throw new Error('no');
    };
    await rejection(mirror.remove(created));
    expect(authenticate({ apiKeys: mirror, pepper: PEPPER, clock })(apiKey).keyId).to.equal(
      record.keyId,
    );
    expect(mirror.list(TENANT, { offset: 0, limit: 10 }).total).to.equal(1);
  });

  it('are limited to 100,000 in total', async () => {
    const { record } = minted(10_000);
    for (let n = 0; n < 100_000; n += 1) {
      const tenant = { user: `user-${n % 101}`, keyId: `key-${n}`, shortName: `k${n}` };
      store.records.set(tenant.keyId, { ...record, ...tenant, revision: '1' });
    }
    await mirror.start();
    const [first] = store.records.values();

    expect(await rejection(mirror.create(minted().record))).to.include({ code: 'CONFLICT' });
    await mirror.remove(first!);
    await mirror.create(minted().record);
    expect(await rejection(mirror.create(minted().record))).to.include({ code: 'CONFLICT' });
  });

  it('are limited to 1,000 per user, without expired keys', async () => {
    for (let n = 0; n < 1_000; n += 1) await mirror.create(minted(n === 0 ? 1 : 1_000).record);
    const refusal = await rejection(mirror.create(minted().record));
    expect(refusal).to.be.instanceOf(Refusal).with.property('code', 'CONFLICT');
    clock.time += 1;
    await mirror.create(minted().record);
    expect([mirror.size, store.records.size]).to.deep.equal([1_000, 1_000]);
  });

  it('can be created even if another replica has just removed the expired keys', async () => {
    const { record: expired } = minted(1);
    await mirror.create(expired);
    for (let n = 1; n < 1_000; n += 1) await mirror.create(minted(1_000).record);
    clock.time += 1;
    const remove = store.remove.bind(store);
    store.remove = async (record) => {
      await remove(record); // the other's
      await remove(record);
    };
    await mirror.create(minted(1_000).record);
    expect(mirror.find(expired.keyId)).to.equal(undefined);
  });

  describe('with two replicas', () => {
    const other = async (follows: boolean) => {
      const apiKeys = new ApiKeyMirror({
        apiKeys: store,
        clock,
        revocations: aCoordination(clock),
      });
      if (follows) await apiKeys.start();
      return { apiKeys, ...authentication({ apiKeys, pepper: PEPPER, clock }) };
    };

    it('are valid on the other replica before its mirror shows them, with one shared read', async () => {
      const { authenticate: known, authenticateAfresh } = await other(false);
      const { apiKey, record } = minted();
      await mirror.create(record);
      store.reads = 0;

      expect(() => known(apiKey)).to.throw(Refusal, 'invalid API key');
      const callers = await Promise.all(
        Array.from({ length: 16 }, () => authenticateAfresh(apiKey)),
      );

      expect(new Set(callers.map(({ keyId }) => keyId))).to.deep.equal(new Set([record.keyId]));
      expect(store.reads).to.equal(1);
      expect(known(apiKey).keyId).to.equal(record.keyId);
    });

    it('are refused on both replicas after a revocation, even if a read is late', async () => {
      const { apiKeys, authenticate: known, authenticateAfresh } = await other(true);
      const { apiKey, record } = minted();
      const created = await mirror.create(record);
      expect(known(apiKey).keyId).to.equal(record.keyId);

      await mirror.remove(created);

      expect(() => known(apiKey)).to.throw(Refusal, 'invalid API key');
      let reads = 0;
      store.get = async () => {
        reads += 1;
        return created;
      }; // as it stood before
      expect(await rejection(authenticateAfresh(apiKey)))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'INVALID_API_KEY');
      expect([apiKeys.find(record.keyId), reads]).to.deep.equal([undefined, 0]);
    });

    it('are refused on the other replica at the notification, before its mirror changes', async () => {
      const revocations = aCoordination(clock);
      const [here, there] = [
        new ApiKeyMirror({ apiKeys: store, clock, revocations }),
        new ApiKeyMirror({ apiKeys: store, clock, revocations }),
      ];
      store.watch = async () => undefined; // it is late
      await there.start();
      const { apiKey, record } = minted();
      const created = await here.create(record);
      const { authenticate: known, authenticateAfresh } = authentication({
        apiKeys: there,
        pepper: PEPPER,
        clock,
      });
      await authenticateAfresh(apiKey);
      let ended = 0;
      there.followEnd(record.keyId, () => {
        ended += 1;
      });

      await here.remove(created);

      expect(() => known(apiKey)).to.throw(Refusal, 'invalid API key');
      expect(ended).to.equal(1);
    });

    it('can be removed even if somebody has changed them in the meantime', async () => {
      const { apiKeys } = await other(false);
      const { record } = minted();
      const created = await mirror.create(record);
      await apiKeys.renew({ ...created, expiresAt: created.expiresAt + 1 });

      await mirror.remove(created);

      expect(store.records.size).to.equal(0);
      await mirror.remove(created); // as often as anybody likes
    });

    it('are found by name before the mirror shows them', async () => {
      const { apiKeys } = await other(false);
      const { record } = minted();
      await mirror.create(record);

      expect(await apiKeyNamed({ apiKeys }, record)).to.have.property('keyId', record.keyId);
      expect(
        await rejection(
          apiKeyNamed({ apiKeys }, { namespace: 'team-red', shortName: record.shortName }),
        ),
      ).to.have.property('code', 'API_KEY_NOT_FOUND');
    });

    it('are refused if they are revoked during the read that authenticates them', async () => {
      const { apiKeys, authenticateAfresh } = await other(true);
      const { apiKey, record } = minted();
      const created = { ...record, revision: '1' };
      let answer = (): void => undefined;
      store.get = () =>
        new Promise((resolve) => {
          answer = () => resolve(created);
        });
      const refused = rejection(authenticateAfresh(apiKey));
      await Promise.resolve();
      await mirror.create(record);
      await mirror.remove(created);
      answer();

      expect(await refused)
        .to.be.instanceOf(Refusal)
        .with.property('code', 'INVALID_API_KEY');
      expect(apiKeys.find(record.keyId)).to.equal(undefined);
    });

    it('are not looked up if their checksum, secret or expiry is wrong', async () => {
      const { authenticateAfresh } = await other(true);
      const { apiKey, record } = minted();
      await mirror.create(record);
      store.reads = 0;
      const wrongSecret = formatApiKey({ keyId: record.keyId, secret: 'c'.repeat(43) });
      for (const key of ['x', `${apiKey}x`, wrongSecret])
        expect(await rejection(authenticateAfresh(key)), key)
          .to.be.instanceOf(Refusal)
          .with.property('code', 'INVALID_API_KEY');
      clock.time += 1_000;
      expect(await rejection(authenticateAfresh(apiKey)))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'INVALID_API_KEY');

      expect(store.reads).to.equal(0);
      expect(await rejection(authenticateAfresh(undefined)))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'API_KEY_REQUIRED');
    });

    it('are looked up by a bounded number of reads at once', async () => {
      const { authenticateAfresh } = await other(false);
      let answer = (): void => undefined;
      const held = new Promise<undefined>((resolve) => {
        answer = () => resolve(undefined);
      });
      store.get = () => held;
      const key = (n: number): string =>
        formatApiKey({ keyId: String(n).padStart(16, '0'), secret: 'c'.repeat(43) });
      const waiting = Array.from({ length: 256 }, (_, n) => rejection(authenticateAfresh(key(n))));

      expect(await rejection(authenticateAfresh(key(999))))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'UNAVAILABLE');
      answer();
      await Promise.all(waiting);
      expect(await rejection(authenticateAfresh(key(999))))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'INVALID_API_KEY');
    });
  });
});

const settled = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
