import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import type { SandboxView } from '../../src/operations/views.ts';
import { alice, aSupervisor, eventually } from '../support/a-supervisor.ts';
import { rejection } from '../support/rejection.ts';

const MARK = { key: 'k'.repeat(22), body: 'b'.repeat(22) };

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));
/** What was found, or why nothing. */
const outcomeOf = (found: Promise<SandboxView | undefined>): Promise<SandboxView | string | undefined> => found.catch(codeOf);

describe('a claim under an Idempotency-Key', () => {
  const filled = async (replicas = 1) => {
    const made = await aSupervisor({ pool: { replicas } });
    await eventually(() => made.supervisor.pools.get(made.pool.uid)?.counts.idle === replicas, 'filled');
    return made;
  };

  it('is found by its mark as long as it lives', async () => {
    const { supervisor, claim, found, clock } = await filled();
    expect(await found(alice, MARK)).to.equal(undefined);
    const { id } = await claim(alice, { poolName: 'default', mark: MARK });

    expect((await found(alice, MARK))?.id).to.equal(id);
    expect(await found({ ...alice, user: 'bob' }, MARK)).to.equal(undefined);
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => supervisor.sandbox(id) === undefined, 'closed');

    expect(await found(alice, MARK)).to.equal(undefined);
  });

  it('is refused with another body', async () => {
    const { claim, found } = await filled();
    await claim(alice, { poolName: 'default', mark: MARK });

    expect(await outcomeOf(found(alice, { ...MARK, body: 'other' }))).to.equal('IDEMPOTENCY_KEY_REUSED');
  });

  it('is in flight until it is known whether it landed, and never lands twice', async () => {
    const { supervisor, pool, claim, found, unsettled, driver, clock } = await filled(2);
    driver.hold('claim');
    const refused = rejection(claim(alice, { poolName: 'default', mark: MARK }));
    await eventually(() => driver.calls.some((call) => call.startsWith('claim')), 'claim sent');
    clock.advance(5_001);
    expect(codeOf(await refused)).to.equal('UNAVAILABLE');

    expect(await outcomeOf(found(alice, MARK))).to.equal('IDEMPOTENCY_IN_FLIGHT');
    const settled = unsettled.settled(MARK);
    driver.letGo('claim');
    await settled;

    const running = supervisor.pools.get(pool.uid)?.counts.running ?? 0;
    expect(running).to.equal(await found(alice, MARK) ? 1 : 0);
  });
});
