import { expect } from 'chai';
import { PausesAtEnd } from '../../src/actors/sandbox/sandbox-effects.ts';
import {
  DefinitionRefused,
  NotJoinable,
  RecordConflict,
} from '../../src/contracts/sandbox-driver.ts';
import { LEAST_AWAKE_MS } from '../../src/model/claim-change.ts';
import type { Claim, InstanceRecord } from '../../src/model/sandbox.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const MINUTE = 60_000;

describe('a sandbox with pause in place of expiry', () => {
  const aClaimed = async (options: Parameters<typeof aSupervisor>[0] = {}) => {
    const world = await aSupervisor({ pool: { replicas: 1 }, ...options });
    const { supervisor, pool, claim } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, {
      poolName: 'default',
      idleTimeoutMs: 0,
      lifetimeMs: MINUTE,
      autoPause: true,
      autoResume: true,
    });
    const claimOf = () => supervisor.sandbox(id)?.context.record?.claim;
    return { ...world, id, claimOf, stateOf: () => supervisor.sandbox(id)?.state };
  };

  it('pauses at its expiry, and runs for some minutes after a call wakes it', async () => {
    const { supervisor, clock, id, claimOf, stateOf } = await aClaimed();

    clock.advance(MINUTE - 1);
    expect(claimOf()?.pausedAt).to.equal(undefined);
    clock.advance(1);
    await eventually(() => claimOf()?.pausedAt === clock.now(), 'paused');
    clock.advance(1_000 * MINUTE);
    expect(stateOf()).to.equal('running');

    const paused = supervisor.sandbox(id)!; // it was paused just now
    await supervisor.pauses.awake(paused);
    expect(claimOf()).to.include({ endsAt: clock.now() + LEAST_AWAKE_MS, autoPause: true });
    clock.advance(LEAST_AWAKE_MS);
    await eventually(() => claimOf()?.pausedAt !== undefined, 'paused again');
  });

  it('ends once its maximum lifetime is over', async () => {
    const { pool } = await aSupervisor();
    const definition = { ...pool.definition, maxLifetimeMs: 2 * MINUTE };
    const { clock, claimOf, stateOf } = await aClaimed({ pool: { replicas: 1, definition } });

    clock.advance(MINUTE);
    await eventually(() => claimOf()?.pausedAt !== undefined, 'paused');
    clock.advance(MINUTE);
    await eventually(() => stateOf() === undefined, 'ended');
  });

  it('ends if it cannot be paused, after half a minute of attempts', async () => {
    const refused = await aClaimed();
    refused.driver.failNext('amend', new DefinitionRefused('no freezer'));
    refused.clock.advance(MINUTE);
    await eventually(() => refused.stateOf() === undefined, 'ended');

    const late = await aClaimed();
    late.driver.failNext('amend', new NotJoinable('not now'));
    late.clock.advance(MINUTE);
    await eventually(() => late.driver.calls.includes(`amend ${late.id}`), 'tried');
    expect(late.stateOf()).to.equal('running');
    await eventually(() => {
      late.clock.advance(1_000);
      return late.claimOf()?.pausedAt !== undefined;
    }, 'paused');
  });

  it('repeats a pause that was written, failed and was reverted', async () => {
    const { driver, clock, claimOf, stateOf } = await aClaimed();
    const amend = driver.amend.bind(driver);
    let failures = 2;
    driver.amend = async (of, change, seen) => {
      const record = await amend(of, change, seen);
      if (failures === 0) return record;
      failures -= 1;
      await amend(of, { pausedAt: null }, record.revision);
      throw new NotJoinable('one of its processes does not stop');
    };
    clock.advance(MINUTE);
    await eventually(() => {
      clock.advance(1_000);
      return stateOf() === undefined || claimOf()?.pausedAt !== undefined;
    }, 'paused');
    expect([stateOf(), failures]).to.deep.equal(['running', 0]);
  });

  it('has at most one pause in progress, however long it takes to fail', async () => {
    const { driver, clock, claimOf, stateOf } = await aClaimed();
    const amend = driver.amend.bind(driver);
    let written = 0;
    let letGo = (): void => undefined;
    const frozen = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    driver.amend = async (of, change, seen) => {
      const record = await amend(of, change, seen);
      written += 1;
      if (written > 1) return record;
      await frozen;
      await amend(of, { pausedAt: null }, record.revision);
      throw new NotJoinable('one of its processes does not stop');
    };
    clock.advance(MINUTE);
    await eventually(() => written === 1, 'written');
    clock.advance(MINUTE);
    letGo();

    await eventually(() => {
      clock.advance(1_000);
      return stateOf() !== 'running' || written === 2;
    }, 'tried again');
    await eventually(() => stateOf() !== 'running' || claimOf()?.pausedAt !== undefined, 'paused');
    expect(stateOf()).to.equal('running');
  });

  it('gets half a minute of attempts after a restart if it expired in the meantime', async () => {
    const clock = new TestClock();
    const claim = { autoPause: true, endsAt: clock.now() - MINUTE, maxLifetimeMs: 0 } as Claim;
    const record = { state: 'claimed', revision: '1', claim } as InstanceRecord;
    let error: Error = new NotJoinable('not now');
    const pauses = new PausesAtEnd({
      clock,
      driver: {
        read: async (id) => ({ id, record, vitals: { kind: 'starting' } }),
        amend: () => Promise.reject(error),
      },
    });
    const pause = () =>
      pauses.pause('i', { type: 'confirm-expiry', reason: 'max-lifetime', claim });

    expect(await rejection(pause())).to.equal(error);
    clock.advance(MINUTE);
    error = new RecordConflict('it has moved');
    expect(await rejection(pause())).to.equal(error);
    error = new NotJoinable('not now');
    expect(await pause()).to.equal(undefined);
  });

  it('is refused if the deployment cannot pause sandboxes', async () => {
    const driver = new FakeSandboxDriver();
    driver.description = { ...driver.description, pauses: false };
    const { claim } = await aSupervisor({ driver });

    expect(
      await rejection(claim(alice, { poolName: 'default', lifetimeMs: 1, autoPause: true })),
    ).to.include({ code: 'FEATURE_DISABLED' });
  });
});
