import { expect } from 'chai';
import { assign, createActor, emit, setup, type SnapshotFrom } from 'xstate';
import { ActorHost, type Change } from '../../src/actors/runtime/actor-host.ts';
import { ActorRuntime } from '../../src/actors/runtime/actor-runtime.ts';
import { MOST_THROWS } from '../../src/actors/runtime/rebuilds.ts';
import { GivenLeases } from '../support/fakes/given-leases.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

type BellEvent =
  | { readonly type: 'LEAD' | 'FOLLOW' | 'RING' | 'BREAK' | 'END' }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** Rings where it is led; the smallest machine that has all that a host looks after. */
const bell = setup({
  types: {
    context: {} as { readonly deadline: number | undefined },
    input: {} as { readonly deadline: number | undefined },
    events: {} as BellEvent,
    emitted: {} as { readonly type: 'ring' },
  },
}).createMachine({
  context: ({ input: { deadline } }) => ({ deadline }),
  initial: 'following',
  states: {
    following: { on: { LEAD: 'leading' } },
    leading: {
      on: {
        FOLLOW: 'following',
        RING: { actions: emit({ type: 'ring' }) },
        DEADLINE: { actions: [assign({ deadline: undefined }), emit({ type: 'ring' })] },
      },
    },
    over: { type: 'final' },
  },
  on: {
    END: '.over',
    BREAK: {
      actions: () => {
        throw new Error('broken');
      },
    },
  },
});
type Snapshot = SnapshotFrom<typeof bell>;
type Ring = { readonly type: 'ring' };
type BellInput = { readonly deadline: number | undefined };

const aHost = () => {
  const clock = new TestClock();
  const leases = new GivenLeases();
  const runtime = new ActorRuntime({ metrics: silentMetrics, leases, clock, log: quietLog });
  const rung: string[] = [];
  const changes: string[] = [];
  const host: ActorHost<Snapshot, BellEvent, Ring, BellInput> = new ActorHost<
    Snapshot,
    BellEvent,
    Ring,
    BellInput
  >(runtime, {
    name: 'pool',
    entity: 'bell',
    prefix: 'b',
    create: (input) => createActor(bell, { input }),
    pathOf: ({ value }) => value,
    listed: () => ({ group: 'bells', born: 0 }),
    causeOf: () => '',
    isOver: ({ status }) => status === 'done',
    deadlineOf: ({ context }) => context.deadline,
    due: (key, now) => {
      host.send(key, { type: 'DEADLINE', now });
    },
    leading: { shardOf: () => 7, lead: () => ({ type: 'LEAD' }), follow: { type: 'FOLLOW' } },
    intent: (key) => ({
      name: 'ring',
      lease: runtime.leaseOf(7),
      act: () => {
        rung.push(key);
      },
    }),
    changed: (key, { before, path, event }: Change<Snapshot, BellEvent>) => {
      changes.push(`${key} ${event.type}: ${before?.value ?? ''} > ${path}`);
    },
    remake: (key) => {
      host.make(key, { deadline: undefined });
    },
  });
  return { host, clock, leases, runtime, rung, changes };
};

describe('an actor host', () => {
  it('finds its actors by key, and returns the outcome of each event', () => {
    const { host, changes } = aHost();
    host.make('a', { deadline: undefined });
    host.send('a', { type: 'LEAD' });

    expect(host.snapshot('a')?.value).to.equal('leading');
    expect(host.send('b', { type: 'LEAD' })).to.equal(false);
    expect(changes).to.deep.equal(['a FOUND:  > following', 'a LEAD: following > leading']);
    expect(host.transitions.of('a').map(({ to }) => to)).to.deep.equal(['following', 'leading']);
  });

  it('tells its actors that their shard has a leader, also actors created later', () => {
    const { host } = aHost();
    host.make('early', { deadline: undefined });
    host.lead(7);
    host.make('late', { deadline: undefined });
    expect(['early', 'late'].map((key) => host.snapshot(key)?.value)).to.deep.equal([
      'leading',
      'leading',
    ]);

    host.follow(7);
    expect(host.snapshot('early')?.value).to.equal('following');
  });

  it("runs an actor's effects under the current lease, and drops them without one", () => {
    const { host, leases, runtime, rung } = aHost();
    host.make('a', { deadline: undefined });
    host.lead(7);
    host.send('a', { type: 'RING' });
    expect(rung).to.deep.equal([]);

    leases.give(7, 1);
    host.send('a', { type: 'RING' });
    expect(rung).to.deep.equal(['a']);
    expect(runtime.outbox.numbers('supervisor').dropped).to.equal(1);
  });

  it('wakes each actor at its deadline', () => {
    const { host, clock, leases, rung } = aHost();
    leases.give(7, 1);
    host.lead(7);
    host.make('a', { deadline: clock.now() + 1_000 });
    clock.advance(999);
    expect(rung).to.deep.equal([]);
    clock.advance(1);
    expect(rung).to.deep.equal(['a']);
  });

  it('forgets a finished actor and its deadline', () => {
    const { host, clock, runtime } = aHost();
    host.make('a', { deadline: clock.now() + 1_000 });
    host.send('a', { type: 'END' });
    expect([host.has('a'), host.size, host.transitions.size]).to.deep.equal([false, 0, 0]);
    expect(runtime.armed.count).to.equal(0);
  });

  it('recreates an actor that threw after a pause, and gives up if it keeps throwing', () => {
    const { host, clock } = aHost();
    host.make('a', { deadline: undefined });
    for (let times = 0; times < 4; times += 1) {
      host.send('a', { type: 'BREAK' });
      expect([host.has('a'), host.rebuilds.has('a')]).to.deep.equal([false, true]);
      clock.advance(30_000);
      expect(host.has('a'), `made anew after ${times + 1}`).to.equal(true);
    }
    host.send('a', { type: 'BREAK' });
    clock.advance(3_600_000);
    expect([host.has('a'), host.rebuilds.broken]).to.deep.equal([false, ['a']]);

    void host.rebuild('a');
    expect([host.has('a'), host.rebuilds.broken]).to.deep.equal([true, []]);
  });

  it('treats an actor that throws during creation in the same way', () => {
    const { host, clock, runtime } = aHost();
    const poison: BellInput = {
      get deadline(): never {
        throw new Error('poison');
      },
    };
    expect(host.make('a', poison)).to.equal(undefined);
    expect([host.has('a'), host.rebuilds.has('a'), runtime.armed.count]).to.deep.equal([
      false,
      true,
      0,
    ]);
    clock.advance(100);
    expect(host.has('a')).to.equal(true);

    for (let times = 1; times < MOST_THROWS; times += 1) host.make('a', poison);
    expect([host.has('a'), host.rebuilds.broken]).to.deep.equal([false, ['a']]);
    expect(host.transitions.current('a')).to.include({ state: 'broken', group: 'bells' });
  });
});
