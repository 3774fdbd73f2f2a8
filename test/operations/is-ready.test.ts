import { expect } from 'chai';
import { isReady } from '../../src/actors/sandbox/commands/is-ready.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

describe('the readiness of a sandbox', () => {
  it('is answered within 35 s, even if its probes never end', async () => {
    const { supervisor, driver, clock, pool, claim } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    let isAsked = false;
    driver.probe = () => {
      isAsked = true;
      return new Promise(() => undefined);
    };
    const report = isReady({ supervisor, driver, clock })(alice, id);
    await eventually(() => isAsked, 'its probes run');
    clock.advance(35_000);

    expect(await report).to.deep.equal({ sandboxId: id, ready: false, endpoints: {} });
  });
});
