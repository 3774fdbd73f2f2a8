import { expect } from 'chai';
import { requestOperations } from '../../src/actors/request/request-operations.ts';
import { BadKeys } from '../../src/http/limits/bad-keys.ts';
import { formatApiKey } from '../../src/model/api-key-text.ts';
import { authenticate } from '../../src/services/keys/authenticate.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { mintApiKey } from '../../src/services/keys/mint-api-key.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('rejected API keys', () => {
  let server: TestServer;

  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  const unknown = formatApiKey({ keyId: 'aaaaaaaaaaaaaaaa', secret: 'b'.repeat(43) });

  it('get the same body for every fault', async () => {
    const expired = await server.operations.key('blue', 'ada', 'user', 0);
    const good = server.tenant.key ?? '';
    const wrongSecret = formatApiKey({ keyId: good.split('_')[1] ?? '', secret: 'c'.repeat(43) });
    for (const key of [
      'x',
      'spk_',
      unknown,
      unknown.slice(0, -1),
      `${unknown.slice(0, -1)}!`,
      expired,
      wrongSecret,
      `${good} `.repeat(2),
      '\u00ff',
    ]) {
      const { status, text } = await server.anyone.get('/sandboxes', { key });
      expect([key, status, text]).to.deep.equal([
        key,
        401,
        '{"error":"invalid API key","errorCode":"INVALID_API_KEY"}',
      ]);
    }
  });

  it('above 20 a minute from one address are delayed, while valid ones work', async () => {
    for (let n = 0; n < 20; n += 1)
      expect((await server.anyone.get('/sandboxes', { key: unknown })).status).to.equal(401);
    server.operations.clock.advance(15_000);

    const { status, headers, json } = await server.anyone.get('/sandboxes', { key: unknown });
    expect([status, headers['retry-after'], json.errorCode]).to.deep.equal([
      429,
      '45',
      'RATE_LIMITED',
    ]);
    expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    // no key is no rejected key
    expect((await server.anyone.get('/sandboxes')).status).to.equal(401);
    server.operations.clock.advance(45_000);

    expect((await server.anyone.get('/sandboxes', { key: unknown })).status).to.equal(401);
  });

  it('are remembered locally for the 10,000 delayed addresses', async () => {
    const clock = new TestClock();
    const badKeys = new BadKeys(clock, {
      countRejectedKey: async () => ({ within: false, retryAfterMs: 5_000 }),
    });
    const address = (n: number): string => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
    for (let n = 0; n < 10_000; n += 1) await badKeys.note(address(n));
    expect(badKeys.waitOf(address(0))).to.equal(5);
    await badKeys.note(address(10_000));

    expect([badKeys.waitOf(address(0)), badKeys.waitOf(address(1))]).to.deep.equal([0, 5]);
  });

  it('are counted by the address that a trusted proxy forwards', async () => {
    const behind = await aServer({ trustedProxies: ['127.0.0.1'] });
    const ask = async (address: string) =>
      (
        await behind.anyone.get('/sandboxes', {
          key: unknown,
          headers: { 'X-Forwarded-For': address },
        })
      ).status;
    for (let n = 0; n < 20; n += 1) await ask('198.51.100.1');

    expect([await ask('198.51.100.1'), await ask('198.51.100.2')]).to.deep.equal([429, 401]);
    await behind.stop();
  });

  it('do not include keys that another replica has just made', async () => {
    const { record, apiKey } = mintApiKey(
      {
        tenant: { namespace: 'team-blue', team: 'blue', user: 'ada' },
        role: 'user',
        shortName: 'made-there',
        description: '',
        issuedAt: 0,
        expiresAt: Number.MAX_SAFE_INTEGER,
      },
      Buffer.alloc(32, 7),
    );
    const { apiKeys } = server.operations.records;
    apiKeys.records.set(record.keyId, { ...record, revision: '99' }); // not reported yet
    apiKeys.reads = 0;

    const answers = await Promise.all(
      Array.from({ length: 8 }, () => server.anyone.get('/sandboxes', { key: apiKey })),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(Array.from({ length: 8 }, () => 200));
    expect(apiKeys.reads).to.be.within(1, 2);
    expect((await server.anyone.get('/sandboxes', { key: apiKey })).status).to.equal(200);
    expect(apiKeys.reads).to.be.within(1, 2);
  });

  it('are not looked up for a delayed address', async () => {
    for (let n = 0; n < 21; n += 1) await server.anyone.get('/sandboxes', { key: unknown });
    server.operations.records.apiKeys.reads = 0;

    expect(
      (
        await server.anyone.get('/sandboxes', {
          key: formatApiKey({ keyId: 'cccccccccccccccc', secret: 'd'.repeat(43) }),
        })
      ).status,
    ).to.equal(429);
    expect(server.operations.records.apiKeys.reads).to.equal(0);
  });

  it('are not looked up if their checksum is wrong', () => {
    const mirror = new ApiKeyMirror({
      apiKeys: new MemoryApiKeys(),
      clock: new TestClock(),
      revocations: aCoordination(new TestClock()),
    });
    const asked: string[] = [];
    mirror.find = (keyId) => void asked.push(keyId);
    const ask = authenticate({ apiKeys: mirror, pepper: Buffer.alloc(32), clock: new TestClock() });

    for (const key of [
      `${unknown.slice(0, -1)}0`,
      `${unknown.slice(0, -1)}1`,
      unknown.replace('_b', '_c'),
      unknown.toUpperCase(),
    ]) {
      if (key !== unknown) expect(() => ask(key), key).to.throw('invalid API key');
    }
    expect(asked).to.deep.equal([]);
    expect(() => ask(unknown)).to.throw('invalid API key');
    expect(asked).to.deep.equal(['aaaaaaaaaaaaaaaa']);
  });

  it('from ever new addresses displace the oldest window', async () => {
    const clock = new TestClock();
    const badKeys = new BadKeys(clock, requestOperations(aCoordination(clock)));
    for (let n = 0; n < 20; n += 1) await badKeys.note('198.51.100.1');
    for (let n = 0; n < 9_999; n += 1) await badKeys.note(`2001:db8:${n.toString(16)}::1`);
    expect(await badKeys.note('198.51.100.1')).to.equal(60);
    expect(badKeys.waitOf('198.51.100.1')).to.equal(60);
    await badKeys.note('2001:db8:ffff::1');

    expect(await badKeys.note('198.51.100.1')).to.equal(0);
  });

  it('are counted on all replicas together', async () => {
    const clock = new TestClock();
    const shared = requestOperations(aCoordination(clock));
    const [one, other] = [new BadKeys(clock, shared), new BadKeys(clock, shared)];
    for (let n = 0; n < 20; n += 1) await (n % 2 === 0 ? one : other).note('198.51.100.1');

    expect(await other.note('198.51.100.1')).to.equal(60);
    expect([one.waitOf('198.51.100.1'), other.waitOf('198.51.100.1')]).to.deep.equal([0, 60]);
    clock.advance(60_000);
    expect(other.waitOf('198.51.100.1')).to.equal(0);
  });
});
