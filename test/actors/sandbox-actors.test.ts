import { expect } from 'chai';
import { SandboxActors } from '../../src/actors/sandbox/sandbox-actors.ts';
import type { SandboxInput } from '../../src/machines/sandbox/events.ts';
import { garbageCollector } from '../support/harness/collect-garbage.ts';
import { anOrder } from '../support/builders/instance-orders.ts';

const ROUND = 5_000;
/** Of what is left of a finished actor, in bytes; the leak that this is about was 300. */
const MOST_LEFT = 60;

describe('the actors of sandboxes', () => {
  const collect = garbageCollector();
  const inputs = (): SandboxInput => ({ now: 1, launchOrder: anOrder() });

  it('leave nothing behind when they have ended', () => {
    const actors = new SandboxActors();
    const round = (): void => {
      for (let n = 0; n < ROUND; n += 1) {
        const actor = actors.make(inputs());
        actor.start();
        const record = {
          id: 'none',
          record: undefined,
          vitals: { kind: 'gone' as const, exitCode: null, reason: 'never' },
        };
        actor.send({ type: 'LAUNCH_REFUSED', reason: 'no' });
        actor.send({ type: 'FACT', fact: record, now: 2 });
        expect(actor.getSnapshot().status).to.equal('done');
      }
    };
    round();
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 3; n += 1) round();
    collect();

    expect((process.memoryUsage().heapUsed - before) / (3 * ROUND)).to.be.below(MOST_LEFT);
  });
});
