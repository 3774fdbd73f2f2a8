import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { ConsoleAccess } from '../../src/services/console/console-access.ts';
import { LoginLimits } from '../../src/services/console/login-limits.ts';
import { aRedisCoordination } from '../support/harness/a-redis-coordination.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const KEY = randomBytes(32);
const clock = new TestClock(Date.now());
const NOBODY = { find: () => undefined, list: () => [], locked: () => [], isLocked: () => false };

const accessOn = (coordination: Coordination): ConsoleAccess =>
  new ConsoleAccess({
    sessions: coordination,
    tokens: coordination,
    operators: NOBODY,
    passwords: { hash: async () => '', verify: async () => false },
    limits: new LoginLimits(coordination, KEY),
    provider: undefined,
    sealKey: KEY,
    clock,
    audit: undefined,
  });

describe('console sessions over replicas', function () {
  const redis = onRedis();

  it('begin on one, continue on another, and end on all at once, without a token in Redis', async () => {
    const settings = { ...redis().settings, prefix: 'console' };
    const [one, other] = await Promise.all([
      aRedisCoordination(settings),
      aRedisCoordination(settings, { replica: 'replica-2' }),
    ]);
    try {
      const [here, there] = [accessOn(one.coordination), accessOn(other.coordination)];
      const terms = {
        requestId: 'r',
        from: { address: '192.0.2.1', device: undefined },
        replaces: undefined,
      };
      const link = await here.issueLink(undefined);
      const { token } = await there.loginByLink(link, terms);

      expect(await rejection(here.loginByLink(link, terms))).to.include({ code: 'FORBIDDEN' });
      expect((await here.openSession(token))?.person.operator).to.equal('owner');
      expect((await there.openSession(token))?.csrf).to.be.a('string');
      for (const key of await redis().client.keys('console:*'))
        expect((await redis().client.dumpBuffer(key))?.includes(token), key).to.not.equal(true);
      await there.logOut(token);
      expect(await here.openSession(token)).to.equal(undefined);
      // Sixty of an address. One whose answer from Redis is late counts on its replica alone; the
      // counts of each by itself would let 120 pass.
      const codes: unknown[] = [];
      while (codes.at(-1) !== 'RATE_LIMITED' && codes.length < 80) {
        const login = (codes.length % 2 ? here : there).loginByLink('guess', terms);
        codes.push(Object(await rejection(login))['code']);
      }
      expect(codes.at(-1)).to.equal('RATE_LIMITED');
    } finally {
      await Promise.all([one.stop(), other.stop()]);
    }
  });
});
