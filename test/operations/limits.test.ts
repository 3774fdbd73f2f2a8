import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { execInSandbox } from '../../src/operations/sandboxes/exec-in-sandbox.ts';
import { KeyedSemaphore } from '../../src/lib/keyed-semaphore.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

const TRUE = { argv: ['true'], timeoutMs: 1_000, outputLimit: 1_024 };

describe('commands under way', () => {
  it('are at most 64 a sandbox and 256 a tenant, and make room when they end', async () => {
    const { supervisor, driver, clock, pool, claim } = await aSupervisor({ pool: { replicas: 5 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 5, 'filled');
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await claim(alice, { poolName: 'default' })).id);
    const exec = execInSandbox({ supervisor, driver, clock });
    const { signal } = new AbortController();
    const refusalOf = (id: string): Promise<unknown> =>
      exec(alice, id, TRUE, signal).then(
        () => undefined,
        (error: unknown) => error,
      );
    driver.hold('exec');
    const running = ids
      .slice(0, 4)
      .flatMap((id) => Array.from({ length: 64 }, () => exec(alice, id, TRUE, signal)));
    for (const id of [ids[0] ?? '', ids[4] ?? '']) {
      const refused = await refusalOf(id);
      expect(refused).to.be.instanceOf(Refusal).and.to.include({ code: 'TOO_MANY_COMMANDS' });
    }
    driver.letGo('exec');
    await Promise.all(running);
    expect(await refusalOf(ids[4] ?? '')).to.equal(undefined);
  });
});

describe('seats', () => {
  it('are counted by key, and given back', () => {
    const semaphore = new KeyedSemaphore(2);
    expect([
      semaphore.acquire('a'),
      semaphore.acquire('a'),
      semaphore.acquire('a'),
      semaphore.acquire('b'),
    ]).to.deep.equal([true, true, false, true]);
    semaphore.release('a');
    expect(semaphore.acquire('a')).to.equal(true);
  });
});
