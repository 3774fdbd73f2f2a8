import { expect } from 'chai';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

const MINUTE = 60_000;

describe('a claim with an end time', () => {
  const ended = async (lifetimeMs: number, maxLifetimeMs: number): Promise<number> => {
    const { pool: usual } = await aSupervisor();
    const definition = { ...usual.definition, maxLifetimeMs };
    const { supervisor, pool, claim, clock } = await aSupervisor({
      pool: { replicas: 1, definition },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default', idleTimeoutMs: 0, lifetimeMs });
    const due = Math.min(lifetimeMs, maxLifetimeMs || lifetimeMs);

    clock.advance(due - 1);
    expect(supervisor.sandbox(id)?.state).to.equal('running');
    const before = clock.now();
    clock.advance(1);
    // The clock stands still: what ends it is due at that very moment.
    await eventually(() => supervisor.sandbox(id)?.state !== 'running', 'it is ended');
    return due - 1 + clock.now() - before;
  };

  it('ends its sandbox at exactly that time', async () => {
    expect(await ended(MINUTE, 0)).to.equal(MINUTE);
  });

  it('ends its sandbox earlier if the maximum lifetime of the template is over', async () => {
    expect(await ended(5 * MINUTE, 2 * MINUTE)).to.equal(2 * MINUTE);
  });
});
