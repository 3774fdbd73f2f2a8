import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { followEvents } from '../../src/actors/sandbox/commands/follow-events.ts';
import { sandboxEvents } from '../../src/actors/sandbox/commands/sandbox-events.ts';
import { followSandboxLogs, sandboxLogs } from '../../src/actors/sandbox/commands/sandbox-logs.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const bob = { ...alice, user: 'bob' };

describe('streams', () => {
  const aClaimed = async (replicas = 1) => {
    const world = await aSupervisor({ pool: { replicas } });
    await eventually(
      () => world.supervisor.pools.get(world.pool.uid)?.counts.idle === replicas,
      'they are idle',
    );
    const ids: string[] = [];
    for (let n = 0; n < replicas; n += 1)
      ids.push((await world.claim(alice, { poolName: 'default' })).id);
    return { ...world, ids, id: ids[0] ?? '' };
  };
  const codeOf = (error: unknown): string | undefined =>
    error instanceof Refusal ? error.code : undefined;

  it('of events are limited to 16 per tenant, and free their slot when closed', async () => {
    const { events } = await aClaimed();
    const follow = followEvents({ events });
    const open = Array.from({ length: 16 }, () => follow(alice, { all: false }));
    expect(() => follow(alice, { all: false }))
      .to.throw(Refusal)
      .with.property('code', 'TOO_MANY_STREAMS');
    follow(bob, { all: false });
    open[0]?.close();
    open[0]?.close();
    follow(alice, { all: false });
    expect(() => follow(alice, { all: false })).to.throw(Refusal);
  });

  it('of logs are limited to 16 per log and 64 per tenant', async () => {
    const world = await aClaimed(5);
    const follow = followSandboxLogs(world);
    const request = { tailLines: 10 };
    for (const id of world.ids.slice(0, 4))
      for (let n = 0; n < 16; n += 1) await follow(alice, id, request);
    expect(codeOf(await rejection(follow(alice, world.ids[0] ?? '', request)))).to.equal(
      'TOO_MANY_STREAMS',
    );
    const refusal = await rejection(follow(alice, world.ids[4] ?? '', request));
    expect(refusal).to.be.instanceOf(Refusal).with.property('message').that.includes('you have 64');
  });

  it('show a finished sandbox only to its owner', async () => {
    const world = await aClaimed();
    const { supervisor, driver, clock, history, id } = world;
    driver.logged.print(id, 'words\n');
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(
      () => history.finished.length === 1 && supervisor.sandbox(id) === undefined,
      'it is finished',
    );

    expect(
      (await sandboxLogs(world)(alice, id, { tailLines: 5 })).lines.map(({ text }) => String(text)),
    ).to.deep.equal(['words']);
    expect((await sandboxEvents(world)(alice, id)).map(({ reason }) => reason)).to.deep.equal([
      'Created',
      'Started',
      'Claimed',
      'Killing',
      'Completed',
    ]);
    expect(codeOf(await rejection(sandboxLogs(world)(bob, id, { tailLines: 5 })))).to.equal(
      'SANDBOX_NOT_FOUND',
    );
    expect(codeOf(await rejection(sandboxEvents(world)(bob, id)))).to.equal('SANDBOX_NOT_FOUND');
    expect(codeOf(await rejection(sandboxEvents(world)(alice, 'x')))).to.equal('SANDBOX_NOT_FOUND');
  });

  it('report the existing containers, and that a log is no longer kept', async () => {
    const world = await aClaimed();
    const refusal = await rejection(
      sandboxLogs(world)(alice, world.id, { tailLines: 5, container: 'side' }),
    );
    expect(refusal)
      .to.be.instanceOf(Refusal)
      .with.deep.property('detail', { field: 'container', allowed: ['main'] });
    world.driver.logged.lose(world.id);
    expect(codeOf(await rejection(sandboxLogs(world)(alice, world.id, { tailLines: 5 })))).to.equal(
      'LOGS_GONE',
    );
    expect(
      codeOf(await rejection(followSandboxLogs(world)(alice, world.id, { tailLines: 5 }))),
    ).to.equal('LOGS_GONE');
  });
});
