import { expect } from 'chai';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';
import { WaitingClaimLimit } from '../../src/actors/claim/waiting-claim-limit.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import type { OpenEndpoint } from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import { endpointOperations } from '../../src/actors/sandbox/commands/open-endpoint.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { aDefinition, ALICE } from '../support/builders/instance-orders.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const bob = { ...alice, user: 'bob' };
const TRUE = { argv: ['true'], timeoutMs: 1_000, outputLimit: 1_024 };

describe('running commands', () => {
  it('are limited to 64 per sandbox and 256 per tenant at a time', async () => {
    const world = await aSupervisor({ pool: { replicas: 5 } });
    const { supervisor, driver, pool, claim } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 5, 'filled');
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await claim(alice, { poolName: 'default' })).id);
    const exec = execInSandbox(world);
    const { signal } = new AbortController();
    const refusalOf = (id: string): Promise<unknown> =>
      exec(alice, id, { request: TRUE, signal }).then(
        () => undefined,
        (error: unknown) => error,
      );
    driver.hold('exec');
    const running: Promise<unknown>[] = [];
    const expectRefused = async (id = '', words: string): Promise<void> => {
      const refused = await refusalOf(id);
      expect(refused).to.be.instanceOf(Refusal).and.to.include({ code: 'TOO_MANY_COMMANDS' });
      expect(String(refused)).to.include(words);
    };
    for (const id of ids.slice(0, 4)) {
      for (let n = 0; n < 64; n += 1) running.push(exec(alice, id, { request: TRUE, signal }));
      await eventually(() => supervisor.sandbox(id)?.context.working === 64, 'all are under way');
      await expectRefused(id, 'the sandbox has 64');
    }
    await expectRefused(ids[4], 'you have 256');
    driver.letGo('exec');
    await Promise.all(running);
    expect(await refusalOf(ids[4] ?? '')).to.equal(undefined);
  });
});

describe('requests to endpoints', () => {
  const web = aDefinition({}, { endpoints: { web: { port: 80, scheme: 'http' } } });

  it('are limited to 256 per sandbox and 1,024 per tenant at a time', async () => {
    const { supervisor, driver, clock, pool, claim } = await aSupervisor({
      pool: { replicas: 6, definition: web, access: 'team' },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 6, 'filled');
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await claim(alice, { poolName: 'default' })).id);
    const foreign = await claim(bob, { poolName: 'default' });
    const { openEndpoint: open } = endpointOperations({
      ...{ supervisor, driver, clock, claimEnv: testClaimEnv },
    });
    const refusalOf = async (id: string): Promise<Error> =>
      await rejection((async () => open(alice, id, 'web'))());
    const opened: OpenEndpoint[] = [];
    for (const id of ids.slice(0, 4))
      for (let n = 0; n < 256; n += 1) opened.push(await open(alice, id, 'web'));

    for (const [id = '', words] of [
      [ids[0], 'the sandbox has 256'],
      [ids[4], 'you have 1024'],
    ]) {
      const refused = await refusalOf(id);
      expect(refused).to.include({ code: 'TOO_MANY_CONNECTIONS' });
      expect(refused.message).to.include(words);
    }
    (await open(bob, foreign.id, 'web')).close();
    opened[0]?.close();
    opened[0]?.close();
    await open(alice, ids[4] ?? '', 'web');
    expect(await refusalOf(ids[4] ?? '')).to.include({ code: 'TOO_MANY_CONNECTIONS' });
  });
});

describe('waiting claims', () => {
  const tenant = (n: number) => ({ ...ALICE, user: `user-${n}` });

  it('are limited to 512 per tenant and 2,048 in total at a time', () => {
    const limit = new WaitingClaimLimit();
    const ends: (() => void)[] = [];
    for (let n = 0; n < 4; n += 1) {
      for (let at = 0; at < 512; at += 1) ends.push(limit.acquire(tenant(n)));
      if (n < 3)
        expect(() => limit.acquire(tenant(n)))
          .to.throw(Refusal)
          .with.property('code', 'TOO_MANY_WAITING');
    }
    expect(() => limit.acquire(tenant(5)))
      .to.throw(Refusal)
      .with.property('code', 'UNAVAILABLE');
    ends[0]?.();
    limit.acquire(tenant(5));
    expect(() => limit.acquire(tenant(6))).to.throw(Refusal);
  });
});
