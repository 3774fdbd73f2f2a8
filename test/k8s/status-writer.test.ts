import { expect } from 'chai';
import fc from 'fast-check';
import type { PublishedStatus } from '../../src/contracts/record-store.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { ApiRefused, ApiUnreachable } from '../../src/k8s/api/api-errors.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import type { Condition, ObjectStatus } from '../../src/k8s/api/resource.ts';
import { ObjectEvents } from '../../src/k8s/status/object-events.ts';
import { StatusWriter } from '../../src/k8s/status/status-writer.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { runs } from '../support/harness/runs.ts';
import { turns } from '../support/harness/turns.ts';
import { MemoryApi, type StoredObject } from './a-memory-api.ts';

const UID = 'pool-1';
const PATH = '/apis/sandpool.dev/v1alpha1/namespaces/alpha/sandboxpools/p';
const EVENTS = '/api/v1/namespaces/alpha/events/';

type PoolObject = StoredObject & { readonly status?: ObjectStatus };

const CONFLICT = new ApiRefused({
  status: 409,
  reason: 'Conflict',
  message: 'the object has been modified',
  causes: [],
  retryAfterSeconds: undefined,
});

const aStatus = (part: Partial<PublishedStatus> = {}): PublishedStatus => ({
  namespace: 'alpha',
  name: 'p',
  fields: { idleReplicas: 1 },
  conditions: [
    { type: 'Ready', status: 'True', reason: 'InstancesIdle', message: '' },
    { type: 'Degraded', status: 'False', reason: 'AsExpected', message: '' },
  ],
  undecided: false,
  pending: false,
  ...part,
});
const degraded = aStatus({
  fields: { idleReplicas: 0 },
  conditions: [
    { type: 'Ready', status: 'False', reason: 'Degraded', message: 'no node' },
    { type: 'Degraded', status: 'True', reason: 'Unschedulable', message: 'no node' },
  ],
});

/** Replicas that look at one object; each says what the pool is, while it leads. */
const aWorld = () => {
  const api = new MemoryApi();
  const clock = new TestClock();
  api.put(PATH, { metadata: { name: 'p', namespace: 'alpha', generation: 1 } });
  const object = (): PoolObject => api.objects.get(PATH) as PoolObject;
  const events = (): readonly (StoredObject & Record<string, unknown>)[] =>
    [...api.objects].flatMap(([path, stored]) =>
      path.startsWith(EVENTS) ? [stored as StoredObject & Record<string, unknown>] : [],
    );
  const world = { says: aStatus() as PublishedStatus | undefined, leader: 0, writes: 0 };
  const failNext: (() => unknown)[] = [];
  const server: ApiServer = {
    ...api.server,
    lane: () => ({
      ...api.client,
      patch: async (path, body, options) => {
        if (path === `${PATH}/status`) world.writes += 1;
        const fault = failNext.shift();
        if (fault) throw fault();
        const event = path.startsWith(EVENTS) && api.objects.get(path);
        return event
          ? api.put(path, { ...event, ...body })
          : await api.client.patch(path, body, options);
      },
    }),
  };
  const aReplica = (index: number): StatusWriter => {
    const writer = new StatusWriter({
      api: server,
      clock,
      log: quietLog,
      objects: {
        pool: {
          kind: 'SandboxPool',
          plural: 'sandboxpools',
          standing: () => ({ ...object().metadata, ...object() }),
          added: () => ({}),
        },
        env: {
          kind: 'SandboxEnv',
          plural: 'sandboxenvs',
          standing: () => undefined,
          added: () => ({}),
        },
      },
      events: new ObjectEvents({ api: server, clock, log: quietLog, replica: `r${index}` }),
    });
    writer.publish(() => (world.leader === index ? world.says : undefined));
    return writer;
  };
  const elapse = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await turns();
    }
  };
  const conditions = (): readonly Condition[] => object().status?.conditions ?? [];
  return { api, clock, world, failNext, aReplica, elapse, object, conditions, events };
};

describe('the status of a pool in kubectl', () => {
  it('is written at most once a second, and only after changes', async () => {
    const { world, aReplica, elapse, object } = aWorld();
    const writer = aReplica(0);
    for (let change = 1; change <= 50; change++) {
      world.says = aStatus({ fields: { idleReplicas: change } });
      writer.changed('pool', UID);
      await elapse(100);
    }
    await elapse(2_000);
    expect(world.writes).to.be.within(5, 7);
    expect(object().status?.['idleReplicas']).to.equal(50);

    const { writes } = world;
    for (let look = 0; look < 20; look++) {
      writer.changed('pool', UID);
      await elapse(1_000);
    }
    expect(world.writes).to.equal(writes);
  });

  it('is written while it changes all the time', async () => {
    const { clock, world, aReplica } = aWorld();
    const writer = aReplica(0);
    for (let change = 1; change <= 100; change++) {
      world.says = aStatus({ fields: { idleReplicas: change } });
      writer.changed('pool', UID);
      clock.advance(20);
      await turns();
    }
    expect(world.writes).to.be.within(2, 3);
  });

  it('is written by the leader only', async () => {
    const { world, aReplica, elapse } = aWorld();
    aReplica(1).changed('pool', UID);
    await elapse(3_000);
    expect(world.writes).to.equal(0);
  });

  it('keeps the transition times of its conditions', async () => {
    const { world, aReplica, elapse, conditions } = aWorld();
    const writer = aReplica(0);
    writer.changed('pool', UID);
    await elapse(5_000);
    const before = conditions().find(({ type }) => type === 'Ready')?.lastTransitionTime;
    world.says = aStatus({ fields: { idleReplicas: 9 } });
    writer.changed('pool', UID);
    await elapse(5_000);
    expect(conditions().find(({ type }) => type === 'Ready')?.lastTransitionTime).to.equal(before);
    world.says = degraded;
    writer.changed('pool', UID);
    await elapse(5_000);
    expect(conditions().find(({ type }) => type === 'Ready')?.lastTransitionTime).to.not.equal(
      before,
    );
  });

  it('keeps a denied size, and shows nothing before the decision', async () => {
    const { api, world, aReplica, elapse, object, conditions } = aWorld();
    const writer = aReplica(0);
    world.says = aStatus({ undecided: true });
    writer.changed('pool', UID);
    await elapse(3_000);
    expect(world.writes).to.equal(0);

    const denied = {
      type: 'Ready',
      status: 'False',
      reason: 'QuotaExceeded',
      message: '5 of 4',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    api.put(PATH, { ...object(), status: { conditions: [denied] } });
    writer.changed('pool', UID);
    await elapse(3_000);
    expect(object().status?.['idleReplicas']).to.equal(1);
    expect(conditions()).to.deep.include(denied);
  });

  it('has an event per change of a condition, with a count of repetitions', async () => {
    const { world, aReplica, elapse, events } = aWorld();
    const writer = aReplica(0);
    for (const says of [aStatus(), degraded, aStatus(), degraded]) {
      world.says = says;
      writer.changed('pool', UID);
      await elapse(2_000);
    }
    expect(
      events().map(({ type, reason, message, count }) => ({ type, reason, message, count })),
    ).to.have.deep.members([
      { type: 'Normal', reason: 'InstancesIdle', message: 'Ready is True', count: 2 },
      { type: 'Normal', reason: 'Degraded', message: 'Ready is False: no node', count: 2 },
      { type: 'Warning', reason: 'Unschedulable', message: 'Degraded is True: no node', count: 2 },
      { type: 'Normal', reason: 'AsExpected', message: 'Degraded is False', count: 1 },
    ]);
  });

  it('has few events if conditions change all the time', async () => {
    const { world, events, aReplica, elapse } = aWorld();
    const writer = aReplica(0);
    for (let change = 0; change < 60; change++) {
      world.says = change % 2 === 0 ? degraded : aStatus();
      writer.changed('pool', UID);
      await elapse(1_000);
    }
    const written = events().reduce((sum, { count }) => sum + Number(count), 0);
    expect(written).to.be.within(10, 11);
  });

  it('matches the leader after any series of faults', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            leader: fc.constantFrom(0, 1),
            idle: fc.nat(3),
            bad: fc.boolean(),
            fault: fc.constantFrom('none', 'conflict', 'unknown', 'away', 'other writer', 'lost'),
            waitMs: fc.nat(20).map((tenths) => tenths * 100),
          }),
          { maxLength: 12 },
        ),
        async (steps) => {
          const { api, world, failNext, aReplica, elapse, object, conditions } = aWorld();
          const replicas = [aReplica(0), aReplica(1)];
          let last = world.says;
          let isLost = true;
          for (const { leader, idle, bad, fault, waitMs } of steps) {
            last = { ...(bad ? degraded : aStatus()), fields: { idleReplicas: idle } };
            world.says = last;
            const isNew = leader !== world.leader;
            world.leader = leader;
            if (fault === 'conflict') failNext.push(() => CONFLICT);
            if (fault === 'unknown') failNext.push(() => new OutcomeUnknown('no answer'));
            if (fault === 'away')
              failNext.push(
                ...Array.from({ length: 3 }, () => () => new ApiUnreachable('connection refused')),
              );
            if (fault === 'other writer') {
              api.put(PATH, { ...object(), status: { conditions: [] } });
              replicas[leader]?.changed('pool', UID); // by its watch
            }
            isLost = fault === 'lost' && !isNew;
            if (!isLost) replicas[leader]?.changed('pool', UID);
            await elapse(waitMs);
          }
          failNext.length = 0;
          if (isLost) replicas[world.leader]?.changed('pool', UID);
          await elapse(31_000);

          expect(object().status?.['idleReplicas']).to.equal(last?.fields['idleReplicas']);
          expect(
            conditions().map(({ type, status, reason, message }) => ({
              type,
              status,
              reason,
              message,
            })),
          ).to.deep.equal(last?.conditions);
        },
      ),
      { numRuns: runs(60) },
    ));
});
