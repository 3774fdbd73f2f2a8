import { expect } from 'chai';
import { EnvConditions, type EnvConditionsDeps } from '../../src/actors/env/env-conditions.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';

/** The conditions of one env at a replica that leads it once it is told to. */
const aReplica = (env: { record: EnvRecord }, clock: TestClock) => {
  const own = { leads: false };
  const conditions = new EnvConditions({
    envs: {
      get: () => env.record,
      change: async (_: string, change: (record: EnvRecord) => EnvRecord) => {
        env.record = change(env.record);
      },
    } as unknown as EnvConditionsDeps['envs'],
    members: {
      leads: () => own.leads,
      member: () => undefined,
    } as unknown as EnvConditionsDeps['members'],
    groups: { group: () => undefined },
    pools: { get: () => undefined },
    template: () => undefined,
    clock,
    log: quietLog,
  });
  return { own, conditions };
};

describe('the conditions of an env', () => {
  it('have the same times on all replicas after a change of leader', async () => {
    const world = await anEnvWorld();
    const env = { record: (await world.made()).record };
    const clock = new TestClock();
    const [first, second] = [aReplica(env, clock), aReplica(env, clock)];
    first.own.leads = true;
    first.conditions.now(env.record);
    first.conditions.consider(env.record.uid);
    clock.advance(500);
    // told another moment: nothing is saved yet
    const early = second.conditions.now(env.record);
    clock.advance(500);
    expect(env.record.conditions).to.have.lengthOf(early.length);
    expect(env.record.conditions).to.not.deep.equal(early);

    [first.own.leads, second.own.leads] = [false, true];
    second.conditions.consider(env.record.uid);
    clock.advance(20_000);

    expect(second.conditions.now(env.record)).to.deep.equal(env.record.conditions);
    expect(first.conditions.now(env.record)).to.deep.equal(env.record.conditions);
  });
});
