import { expect } from 'chai';
import type { InspectedKinds } from '../../src/actors/inspection/inspected-actors.ts';
import { inspectedPools } from '../../src/actors/inspection/pool-actors.ts';
import { inspectedSandboxes } from '../../src/actors/inspection/sandbox-actors.ts';
import { SHARDS } from '../../src/model/shards.ts';
import { debug } from '../../src/services/debug/debug.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const SECRET = 'planted-in-a-variable';

/** A replica `one` that looks inside; `two`, if it leads, answers what `two` says. */
const aReplica = async (
  options: {
    readonly ledByTwo?: boolean;
    readonly two?: (question: string) => string | undefined;
  } = {},
) => {
  const world = await aSupervisor({ pool: { replicas: 2 } });
  const { supervisor, driver, pools, coordination, clock } = world;
  const pool = inspectedPools({
    pools: supervisor.pools,
    records: pools,
  });
  const kinds: InspectedKinds = {
    sandbox: inspectedSandboxes({ supervisor, driver }),
    pool,
    member: pool,
    group: pool,
    approval: pool,
  };
  const asked: string[] = [];
  const operations = debug({
    kinds,
    supervisor,
    driver,
    clock,
    replica: 'one',
    reflectors: () => [],
    webhooks: () => [],
    coordination: {
      ...coordination,
      replicas: () => ['one', 'two'],
      ...(options.ledByTwo
        ? {
            lease: () => undefined,
            holders: () => new Map(Array.from({ length: SHARDS }, (_, shard) => [shard, 'two'])),
          }
        : {}),
      askReplica: async (_, question) => {
        asked.push(question);
        return options.two?.(question);
      },
    },
  });
  return { ...world, operations, asked };
};

describe('the debug view of a replica', () => {
  it('shows an actor next to its matching record', async () => {
    const { operations, supervisor } = await aReplica();
    await eventually(
      () =>
        supervisor.ids().length === 2 &&
        supervisor.ids().every((id) => supervisor.sandbox(id)?.context.record !== undefined),
      'two are there',
    );
    const [id = ''] = supervisor.ids();

    const view = await operations.getActor(alice, { kind: 'sandbox', text: id });

    expect(view.record.differs).to.deep.equal([]);
    expect(view.transitions[0]).to.include({ number: 1, event: 'ORDERED', from: '' });
    expect(view.seenBy).to.deep.equal({ replica: 'one' });
  });

  it('shows differences between an actor and its record', async () => {
    const { operations, pools, pool } = await aReplica();
    // of which nobody was told
    pools.records.set(pool.uid, { ...pool, revision: '9', replicas: 7 });
    const { record } = await operations.getActor(alice, { kind: 'pool', text: 'default' });

    expect(record.differs).to.deep.include({ field: 'replicas', actor: 2, record: 7 });
  });

  it('shows neither variables nor other parts of a definition', async () => {
    const { operations, supervisor, pool, pools } = await aReplica();
    const [container] = pool.definition.containers;
    const planted = {
      ...pool.definition,
      containers: [{ ...container, env: [{ name: 'TOKEN', value: SECRET }] }],
    } as unknown as typeof pool.definition;
    await pools.update({
      ...(pools.records.get(pool.uid) ?? pool),
      definition: planted,
      source: { template: { env: SECRET } } as unknown as typeof pool.source,
    });
    await eventually(
      () => JSON.stringify(supervisor.pools.get(pool.uid)?.record).includes(SECRET),
      'the mirror has it',
    );

    expect(
      JSON.stringify(await operations.getActor(alice, { kind: 'pool', text: pool.uid })),
    ).to.not.include(SECRET);
    for (const id of supervisor.ids())
      expect(
        JSON.stringify(await operations.getActor(alice, { kind: 'sandbox', text: id })),
      ).to.not.include(SECRET);
  });

  it("shows the answer of an actor's leader", async () => {
    const { operations, asked } = await aReplica({
      ledByTwo: true,
      two: () => JSON.stringify({ value: { seenBy: { replica: 'two' } } }),
    });

    expect(await operations.getActor(alice, { kind: 'pool', text: 'default' })).to.deep.equal({
      seenBy: { replica: 'two' },
    });
    expect(JSON.parse(asked[0] ?? '')).to.include({ about: 'actor', kind: 'pool' });
  });

  it('shows its own view, marked as such, if the leader is silent or lacks the actor', async () => {
    for (const two of [
      () => undefined,
      () => JSON.stringify({ refused: { code: 'NOT_FOUND', message: 'there is no such actor' } }),
    ]) {
      const { operations } = await aReplica({ ledByTwo: true, two });

      const { seenBy } = await operations.getActor(alice, { kind: 'pool', text: 'default' });

      expect(seenBy.replica).to.equal('one');
      expect(seenBy.note).to.include('two leads it, but could not show it');
    }
  });

  it('does not rebuild an actor locally if the named replica did not rebuild it', async () => {
    const { operations } = await aReplica({ ledByTwo: true });

    expect(
      await rejection(operations.rebuildActor(alice, { kind: 'pool', text: 'default' })),
    ).to.include({ code: 'UNAVAILABLE' });
  });

  it('asks a named replica, and refuses a dead one', async () => {
    const { operations } = await aReplica({
      two: () => JSON.stringify({ value: { replica: 'two', isolation: 'pod' } }),
    });

    expect(await operations.getDriver('two')).to.deep.equal({ replica: 'two', isolation: 'pod' });
    expect((await operations.getQueues()).shards).to.have.length(SHARDS);
    expect(await rejection(operations.getQueues('three'))).to.include({ code: 'INVALID_ARGUMENT' });
  });

  it('rebuilds an actor, with the commands in progress', async () => {
    const { operations, supervisor, claim, driver } = await aReplica();
    await eventually(
      () =>
        supervisor.ids().length === 2 &&
        supervisor.ids().every((id) => supervisor.sandbox(id)?.context.record !== undefined),
      'two are there',
    );
    for (const id of supervisor.ids()) driver.becomeAvailable(id);
    const { id } = await claim(alice, { poolName: 'default' });
    supervisor.send(id, { type: 'WORK_BEGAN', now: 1 });

    const view = await operations.rebuildActor(alice, { kind: 'sandbox', text: id });

    expect([view.state, view.context['working']]).to.deep.equal(['running', 1]);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });
});
