import { expect } from 'chai';
import type { Coordination } from '../../src/contracts/coordination.ts';
import type { Requests } from '../../src/contracts/coordination/requests.ts';
import { deadLettersSuite } from '../contracts/dead-letters.ts';
import {
  aRedisCoordination,
  twoRedisCoordinations,
} from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { aReceiver, anApproval, someWebhooks } from '../webhooks/webhook-support.ts';

describe('webhooks with replicas', function () {
  const redis = onRedis();

  let prefixes = 0;
  deadLettersSuite(
    'Redis',
    async () => {
      const settings = { ...redis().settings, prefix: `letters-${(prefixes += 1)}` };
      const { deadLetters, stop } = await aRedisCoordination(settings);
      return { letters: deadLetters, close: stop };
    },
    false,
  );

  it('are sent once even if both replicas believe to lead', async () => {
    const settings = { ...redis().settings, prefix: 'webhooks' };
    const { one, other, stop } = await twoRedisCoordinations(settings);
    const receiver = await aReceiver();
    let failed = 0;
    const counted = async <T>(call: Promise<T>): Promise<T> =>
      await call.catch((error: unknown) => {
        failed += 1;
        throw error;
      });
    const marksOf = (each: Coordination): Requests => ({
      ...each,
      openRequest: (...call) => counted(each.openRequest(...call)),
      keepAnswer: (...call) => counted(each.keepAnswer(...call)),
    });
    const replicas = [one, other].map((each) =>
      someWebhooks([receiver.url], { marks: marksOf(each) }),
    );
    try {
      for (const { webhooks, clock } of replicas)
        for (let n = 0; n < 20; n++) webhooks.note(anApproval(`a-${n}`, clock.now()));
      await eventually(() => {
        for (const { clock, isSending } of replicas) if (!isSending()) clock.advance(100);
        return replicas.every(({ webhooks }) => webhooks.report()[0]?.waiting === 0);
      }, 'all is told');

      expect(new Set(receiver.ids()).size).to.equal(20);
      // a mark that Redis did not take in time may have a message come twice
      expect(receiver.received.length).to.be.within(20, 20 + failed);
    } finally {
      for (const { webhooks } of replicas) webhooks.stop();
      await Promise.all([receiver.stop(), stop()]);
    }
  });
});
