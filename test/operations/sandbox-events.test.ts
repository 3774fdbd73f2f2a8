import { expect } from 'chai';
import { EventFeed } from '../../src/actors/runtime/event-feed.ts';
import type { Supervisor } from '../../src/actors/sandbox/supervisor.ts';
import { sandboxEvents } from '../../src/actors/sandbox/commands/sandbox-events.ts';
import { aFinished } from '../contracts/history.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { MemoryHistory } from '../support/fakes/memory-records.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('the events of a sandbox', () => {
  it('are in the order of its life, even if the clocks of replicas differ', async () => {
    const clock = new TestClock();
    const history = new MemoryHistory();
    const events = new EventFeed({
      clock,
      log: quietLog,
      history,
      coordination: aCoordination(clock),
    });
    const finished = aFinished({
      owner: alice,
      createdAt: 1_000,
      startedAt: 2_000,
      claimedAt: 1_700,
      terminatedAt: 3_000,
    });
    await history.record(finished);
    const base = { owner: alice, poolName: finished.poolName, sandboxId: finished.id };
    await history.recordEvents([
      {
        id: 1,
        event: {
          ...base,
          at: 3_400,
          reason: 'Killing',
          end: { reason: 'deleted', exitCode: null },
        },
      },
      { id: 2, event: { ...base, at: 1_600, reason: 'IdleTimeoutChanged', idleTimeoutMs: 1 } },
    ]);

    const shown = await sandboxEvents({
      supervisor: { sandbox: () => undefined } as unknown as Supervisor,
      history,
      events,
    })(alice, finished.id);

    expect(shown.map(({ reason }) => reason)).to.deep.equal([
      'Created',
      'Started',
      'Claimed',
      'IdleTimeoutChanged',
      'Killing',
      'Completed',
    ]);
  });
});
