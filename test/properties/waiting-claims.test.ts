import { aSupervisor } from '../support/harness/a-supervisor.ts';
import { servesWaitingClaims } from './waiting-claims.ts';

describe('waiting claims in one process', () => {
  it('are served in order, each once, and none waits while an instance is idle', async function () {
    await servesWaitingClaims(async () => {
      const { supervisor, coordination, pool, clock, claim } = await aSupervisor({
        pool: { replicas: 0 },
      });
      return {
        claims: [claim],
        coordination,
        pool,
        clock,
        grow: async (replicas) => {
          await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas }));
        },
        idle: () => [supervisor.index.idleIn(pool.uid)],
      };
    }, 60);
  });
});
