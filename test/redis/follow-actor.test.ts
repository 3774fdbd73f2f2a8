import { expect } from 'chai';
import { TransitionHistory } from '../../src/actors/runtime/transition-history.ts';
import type {
  InspectedActors,
  InspectedKinds,
} from '../../src/actors/inspection/inspected-actors.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { SHARDS } from '../../src/model/shards.ts';
import { followActor } from '../../src/services/debug/follow-actor.ts';
import { answerText, type ReplicaQuestion } from '../../src/services/debug/replica-views.ts';
import { TransitionSubscriptions } from '../../src/services/debug/transition-subscriptions.ts';
import { twoRedisCoordinations } from '../support/harness/a-redis-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

type Histories = TransitionHistory<{ readonly type: string }>;

describe('following an actor led by another replica', function () {
  const redis = onRedis();
  let one: Coordination;
  let other: Coordination;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    ({ one, other, stop } = await twoRedisCoordinations(redis().settings));
  });
  afterEach(() => stop());

  const kindsOf = (transitions: Histories): InspectedKinds => {
    const actors = {
      transitions,
      keyOf: (text: string) => text,
      inspect: (key: string) => ({ shardKey: key }),
    } as unknown as InspectedActors;
    return { sandbox: actors, pool: actors, member: actors, group: actors, approval: actors };
  };

  it('shows each of its moves once, in order, and its end', async () => {
    const here: Histories = new TransitionHistory({
      clock: systemClock(),
      kind: 'sandbox',
      log: quietLog,
      causeOf: () => '',
    });
    const there: Histories = new TransitionHistory({
      clock: systemClock(),
      kind: 'sandbox',
      log: quietLog,
      causeOf: () => '',
    });
    const move = (transitions: Histories, to: string): void => {
      transitions.moved('a', to, { event: { type: 'X' }, group: 'g', born: 0 });
    };
    for (const transitions of [here, there]) move(transitions, 'idle');
    const sessions = new TransitionSubscriptions({
      kinds: kindsOf(there),
      clock: systemClock(),
      replica: 'replica-2',
    });
    other.answerReplicas((question) =>
      answerText(() =>
        sessions.page(JSON.parse(question) as ReplicaQuestion & { readonly about: 'transitions' }),
      ),
    );
    const follow = followActor({
      kinds: kindsOf(here),
      clock: systemClock(),
      replica: 'replica-1',
      coordination: {
        askReplica: (...asked) => one.askReplica(...asked),
        replicas: () => one.replicas(),
        lease: () => undefined,
        holders: () => new Map(Array.from({ length: SHARDS }, (_, shard) => [shard, 'replica-2'])),
      },
    });
    await eventually(() => one.replicas().includes('replica-2'), 'they know of each other');
    const { news, close } = await follow(alice, { kind: 'pool', text: 'a' });
    const read: string[] = [];
    const over = (async () => {
      for await (const each of news(AbortSignal.timeout(2 * NEVER_COMES_MS))) {
        if (each.kind === 'transition') read.push(each.transition.to);
        else if (each.kind !== 'seen-by') read.push(`(${each.kind})`);
      }
    })();

    const moves = Array.from({ length: 200 }, (_, turn) => `state-${turn}`);
    for (const [turn, state] of moves.entries()) {
      move(there, state);
      if (turn % 70 === 0) await eventually(() => read.at(-1) === state, `${state} is told`);
    }
    there.ended('a');
    await over;
    close();

    expect(read).to.deep.equal([...moves, '(ended)']);
  });
});
