import { expect } from 'chai';
import { TransitionHistory } from '../../src/actors/runtime/transition-history.ts';
import type {
  InspectedActors,
  InspectedKinds,
} from '../../src/actors/inspection/inspected-actors.ts';
import { SHARDS } from '../../src/model/shards.ts';
import type { ActorNews } from '../../src/services/debug/debug-operations.ts';
import { followActor, LOOK_MS } from '../../src/services/debug/follow-actor.ts';
import { answerText, type ReplicaQuestion } from '../../src/services/debug/replica-views.ts';
import {
  SESSION_MS,
  TransitionSubscriptions,
} from '../../src/services/debug/transition-subscriptions.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

type Histories = TransitionHistory<{ readonly type: string }>;

/** The one actor is `a`. */
const kindsOf = (transitions: Histories): InspectedKinds => {
  const actors = {
    transitions,
    keyOf: (text: string) => (text === 'a' ? 'a' : undefined),
    inspect: (key: string) => (transitions.current(key) ? { shardKey: key } : undefined),
  } as unknown as InspectedActors;
  return { sandbox: actors, pool: actors, member: actors, group: actors, approval: actors };
};

/** Replicas `one`, whose clients follow, and `two`, each with trails and sessions of its own. */
const twoReplicas = (leader = 'two') => {
  const clock = new TestClock();
  const historyOf = (): Histories =>
    new TransitionHistory({ clock, kind: 'sandbox', log: quietLog, causeOf: () => '' });
  const world = {
    clock,
    leader: leader as string | undefined,
    silent: false,
    old: false,
    asked: 0,
    one: historyOf(),
    two: historyOf(),
    sessions: undefined as unknown as TransitionSubscriptions,
  };
  world.sessions = new TransitionSubscriptions({
    kinds: kindsOf(world.two),
    clock,
    replica: 'two',
  });
  const move = (transitions: Histories, to: string): void => {
    clock.advance(1);
    transitions.moved('a', to, { event: { type: `TO_${to}` }, group: 'g', born: 0 });
  };
  const follow = followActor({
    kinds: kindsOf(world.one),
    clock,
    replica: 'one',
    coordination: {
      replicas: () => ['one', 'two'],
      lease: () => (world.leader === 'one' ? ({ epoch: 1 } as never) : undefined),
      holders: () =>
        new Map(
          world.leader === undefined
            ? []
            : Array.from({ length: SHARDS }, (_, shard) => [shard, world.leader ?? '']),
        ),
      askReplica: async (_, question) => {
        world.asked += 1;
        if (world.silent) return undefined;
        if (world.old) return '{}'; // what one answers that does not know the question
        const asked = JSON.parse(question) as ReplicaQuestion;
        if (asked.about !== 'transitions') throw new Error('nothing else is asked');
        return await answerText(() => world.sessions.page(asked));
      },
    },
  });
  for (const transitions of [world.one, world.two]) move(transitions, 'idle');
  return Object.assign(world, { move, follow });
};

type World = ReturnType<typeof twoReplicas>;

/** A reader of the stream of `a`, and what it has read: transitions by where they lead. */
const aReader = async ({ follow }: World) => {
  const { news, close } = await follow(alice, { kind: 'pool', text: 'a' });
  const controller = new AbortController();
  const read: string[] = [];
  const wordOf = (each: ActorNews): string =>
    each.kind === 'transition'
      ? each.transition.to
      : each.kind !== 'seen-by'
        ? `(${each.kind})`
        : `<${each.replica}${each.note === undefined ? '' : `: ${each.note}`}>`;
  const over = (async () => {
    for await (const each of news(controller.signal)) read.push(wordOf(each));
  })().finally(close);
  return {
    read,
    over,
    stop: async () => {
      controller.abort();
      await over;
    },
  };
};

/** Time goes on until it is read. */
const reads = (
  { clock }: World,
  { read }: { readonly read: readonly string[] },
  expected: readonly string[],
): Promise<void> =>
  eventually(
    () => {
      if (read.length < expected.length) clock.advance(LOOK_MS);
      return JSON.stringify(read) === JSON.stringify(expected);
    },
    `it reads ${expected.join(' ')}`,
  ).catch((error: unknown) => {
    throw new Error(`it read ${read.join(' ')}`, { cause: error });
  });

describe('following an actor', () => {
  it('shows the moves that its leader reports, not those seen locally', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    for (const state of ['claiming', 'running']) world.move(world.two, state);
    world.move(world.one, 'running');

    await reads(world, reader, ['<two>', 'claiming', 'running']);
    await reader.stop();
  });

  it('shows the moves of a local leader without a remote call or a delay', async () => {
    const world = twoReplicas('one');
    const reader = await aReader(world);
    await eventually(() => reader.read.length === 1, 'it is under way');
    for (const state of ['claiming', 'running']) world.move(world.one, state);
    world.move(world.two, 'elsewhere');

    await eventually(() => reader.read.length === 3, 'it is told');
    expect(reader.read).to.deep.equal(['<one>', 'claiming', 'running']);
    expect(world.asked).to.equal(0);
    await reader.stop();
  });

  it('shows moves from before the subscription without a delay', async () => {
    const world = twoReplicas('one');
    const { news, close } = await world.follow(alice, { kind: 'pool', text: 'a' });
    world.move(world.one, 'running');
    const controller = new AbortController();
    const read: string[] = [];
    const over = (async () => {
      for await (const each of news(controller.signal)) read.push(each.kind);
    })().finally(close);

    await eventually(() => read.length === 2, 'it is told');
    expect(read).to.deep.equal(['seen-by', 'transition']);
    controller.abort();
    await over;
  });

  it('reports a leader whose version does not support it', async () => {
    const world = twoReplicas();
    world.old = true;
    const reader = await aReader(world);

    await reads(world, reader, [
      '<two: its replica runs a version that does not report transitions>',
    ]);
    await reader.stop();
  });

  it('shows the last moves of a deleted actor, and ends', async () => {
    for (const leader of ['one', 'two'] as const) {
      const world = twoReplicas(leader);
      const reader = await aReader(world);
      world.move(world[leader], 'stopping');
      world[leader].ended('a');
      world.move(world[leader], 'made anew');

      await reads(world, reader, [`<${leader}>`, 'stopping', '(ended)']);
      await reader.over;
    }
  });

  it('continues with the next leader if the last one ended', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    world.move(world.two, 'running');
    await reads(world, reader, ['<two>', 'running']);
    world.move(world.one, 'running');
    world.leader = 'one';
    world.move(world.one, 'stopping');
    await reads(world, reader, ['<two>', 'running', '<one>', 'stopping']);
    world.move(world.two, 'stopping');
    world.leader = 'two';
    world.move(world.two, 'gone');

    await reads(world, reader, ['<two>', 'running', '<one>', 'stopping', '<two>', 'gone']);
    await reader.stop();
  });

  it('reports that the leader is silent, and shows its moves later', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    await reads(world, reader, ['<two>']);
    world.silent = true;
    world.move(world.two, 'claiming');
    const silent =
      '<two: its leader does not report transitions: replica two did not answer; try again>';
    await reads(world, reader, ['<two>', silent]);
    world.silent = false;

    await reads(world, reader, ['<two>', silent, '<two>', 'claiming']);
    await reader.stop();
  });

  it('starts at the same position if the leader was silent at first', async () => {
    const world = twoReplicas();
    world.silent = true;
    const reader = await aReader(world);
    world.move(world.two, 'claiming');
    world.silent = false;

    await reads(world, reader, [
      '<two: its leader does not report transitions: replica two did not answer; try again>',
      '<two>',
      'claiming',
    ]);
    await reader.stop();
  });

  it('reports that there is no leader, and shows its own view', async () => {
    const world = twoReplicas();
    world.leader = undefined;
    const reader = await aReader(world);
    world.move(world.one, 'running');

    await reads(world, reader, ['<one: no replica leads it now>', 'running']);
    await reader.stop();
  });

  it('reports moves lost by a change of leader or by a slow reader', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    world.silent = true; // longer than a session lasts
    await reads(world, reader, [
      '<two>',
      '<two: its leader does not report transitions: replica two did not answer; try again>',
    ]);
    for (let turn = 0; turn < 60; turn += 1)
      world.move(world.two, turn % 2 === 0 ? 'short' : 'settled');
    world.clock.advance(2 * SESSION_MS);
    expect(world.sessions.size).to.equal(0);
    world.silent = false;

    const last50 = Array.from({ length: 50 }, (_, turn) => (turn % 2 === 0 ? 'short' : 'settled'));
    await reads(world, reader, [...reader.read, '<two>', '(missed)', ...last50]);
    await reader.stop();
  });

  it('continues with a restarted leader of the same name, and reports possible gaps', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    for (const state of ['claiming', 'running']) world.move(world.two, state);
    await reads(world, reader, ['<two>', 'claiming', 'running']);
    world.two = new TransitionHistory({
      clock: world.clock,
      kind: 'sandbox',
      log: quietLog,
      causeOf: () => '',
    });
    world.sessions = new TransitionSubscriptions({
      kinds: kindsOf(world.two),
      clock: world.clock,
      replica: 'two',
    });
    for (const state of ['running', 'stopping']) world.move(world.two, state);

    await reads(world, reader, ['<two>', 'claiming', 'running', '(missed)', 'stopping']);
    await reader.stop();
  });

  it('shows all of many simultaneous moves', async () => {
    for (const leader of ['one', 'two'] as const) {
      const world = twoReplicas(leader);
      const reader = await aReader(world);
      const moves = Array.from({ length: 300 }, (_, turn) =>
        turn % 2 === 0 ? 'short' : 'settled',
      );
      for (const state of moves) world.move(world[leader], state);
      world[leader].ended('a');

      await reads(world, reader, [`<${leader}>`, ...moves, '(ended)']);
      await reader.over;
    }
  });

  it('leaves nothing behind at the leader after the last reader', async () => {
    const world = twoReplicas();
    const reader = await aReader(world);
    await reads(world, reader, ['<two>']);
    expect(world.sessions.size).to.equal(1);
    await reader.stop();
    const { asked } = world;
    world.clock.advance(2 * SESSION_MS);

    expect([world.sessions.size, world.asked, world.clock.waiting]).to.deep.equal([0, asked, 0]);
  });

  it('is limited to 16 per tenant, and to existing actors', async () => {
    const world = twoReplicas();
    const open = await Promise.all(
      Array.from({ length: 16 }, () => world.follow(alice, { kind: 'pool', text: 'a' })),
    );
    expect(await rejection(world.follow(alice, { kind: 'pool', text: 'a' }))).to.include({
      code: 'TOO_MANY_STREAMS',
    });
    open[0]?.close();
    open[0]?.close();
    await world.follow(alice, { kind: 'pool', text: 'a' });

    expect(
      await rejection(world.follow({ ...alice, team: 'other' }, { kind: 'pool', text: 'b' })),
    ).to.include({ code: 'NOT_FOUND' });
  });
});
