import { expect } from 'chai';
import {
  MAX_REPLICA_ANSWER,
  MAX_REPLICA_QUESTION,
} from '../../src/contracts/coordination/inquiries.ts';
import { type Coordination } from '../../src/contracts/coordination.ts';
import { twoRedisCoordinations } from '../support/harness/a-redis-coordination.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';

const SOON_MS = 50;

describe('requests between replicas', function () {
  const redis = onRedis();
  let one: Coordination;
  let other: Coordination;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    ({ one, other, stop } = await twoRedisCoordinations(redis().settings));
  });
  afterEach(() => stop());

  it('are answered by the addressed replica', async () => {
    other.answerReplicas(async (question) => `${question}, says the other`);
    one.answerReplicas(async (question) => `${question}, says the one`);

    expect(await one.askReplica('replica-2', 'who are you', NEVER_COMES_MS)).to.equal(
      'who are you, says the other',
    );
    expect(await other.askReplica('replica-1', 'who are you', NEVER_COMES_MS)).to.equal(
      'who are you, says the one',
    );
  });

  it('are each answered separately, however many there are', async () => {
    other.answerReplicas(async (question) => question);
    const questions = Array.from({ length: 12 }, (_, n) => `question ${n}`);

    expect(
      await Promise.all(
        questions.map((question) => one.askReplica('replica-2', question, NEVER_COMES_MS)),
      ),
    ).to.deep.equal(questions);
  });

  it('remain unanswered if the replica is dead, silent, fails, or answers too much', async () => {
    const answers: (() => Promise<string>)[] = [
      () => new Promise(() => undefined),
      async () => {
        throw new Error('no');
      },
      async () => 'x'.repeat(MAX_REPLICA_ANSWER + 1),
    ];
    expect(await one.askReplica('nobody', 'hello', SOON_MS)).to.equal(undefined);
    for (const answer of answers) {
      const end = other.answerReplicas(answer);
      expect(await one.askReplica('replica-2', 'hello', SOON_MS)).to.equal(undefined);
      end();
    }
    expect(
      await one.askReplica('replica-2', 'x'.repeat(MAX_REPLICA_QUESTION + 1), NEVER_COMES_MS),
    ).to.equal(undefined);
  });

  it('are no longer answered by a replica that has stopped answering', async () => {
    let asked = 0;
    const end = other.answerReplicas(async () => {
      asked += 1;
      return 'yes';
    });
    await one.askReplica('replica-2', 'hello', NEVER_COMES_MS);
    end();
    await one.askReplica('replica-2', 'hello', SOON_MS);

    await eventually(() => asked === 1, 'it was asked once');
  });
});
