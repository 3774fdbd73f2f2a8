import { expect } from 'chai';
import fc from 'fast-check';
import type { Quotas } from '../../src/contracts/coordination/quotas.ts';
import { LeaseLost, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { ApiRefused } from '../../src/k8s/api/api-errors.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { KubernetesRecordStore } from '../../src/k8s/records/record-store.ts';
import { readyOf, type ResourceObject } from '../../src/k8s/api/resource.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import type { QuotaAmounts } from '../../src/model/pools/quota.ts';
import { unavailable } from '../../src/model/refusals.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { grantPools } from '../../src/actors/pool/commands/grant-pools.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { standsStill } from '../support/harness/turns.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { MemoryApi } from './a-memory-api.ts';
import { runs } from '../support/harness/runs.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const OWNER: Tenant = { namespace: ALICE.namespace, team: ALICE.team, user: 'default' };
const POOLS = `/apis/sandpool.dev/v1alpha1/namespaces/${OWNER.namespace}/sandboxpools`;

interface PoolObject extends ResourceObject {
  readonly spec: { readonly replicas: number };
  readonly resolved?: { readonly replicas?: number; readonly uid: string; readonly seal?: string };
}

describe('a pool created or resized with kubectl', () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  const world = (limits: Partial<QuotaAmounts>) => {
    const api = new MemoryApi();
    const clock = new TestClock();
    const coordination = aCoordination(clock);
    const quota = {
      sandboxes: 10,
      pools: 10,
      replicas: 10,
      cpu: Number.POSITIVE_INFINITY,
      memory: Number.POSITIVE_INFINITY,
      ...limits,
    };
    const settledLater: Tenant[] = [];
    const aReplica = async (quotas: Partial<Quotas> = {}, server: ApiServer = api.server) => {
      const records = new KubernetesRecordStore({
        metrics: silentMetrics,
        api: server,
        log: quietLog,
        seals: testSeals,
        now: () => clock.now(),
        lookups: {
          instanceType: () => undefined,
          check: () => undefined,
          teamOf: () => OWNER.team,
          clusterId: 'local',
        },
        outdated: () => undefined,
        grants: grantPools({
          coordination: { ...coordination, ...quotas },
          clock,
          quotaLimits: { of: () => quota },
          supervisor: {
            reconcileLater: (tenant) => {
              settledLater.push(tenant);
            },
          },
        }),
      });
      const pools = new Map<string, PoolRecord>();
      await records.pools.watch(({ kind, record }) =>
        kind === 'put' ? pools.set(record.name, record) : pools.delete(record.name),
      );
      stops.push(() => records.stop());
      return { records, pools };
    };
    const read = (name = 'p') => api.objects.get(`${POOLS}/${name}`) as unknown as PoolObject;
    return {
      api,
      quota,
      coordination,
      aReplica,
      read,
      settledLater,
      make: (replicas: number, name = 'p') =>
        api.put(`${POOLS}/${name}`, {
          apiVersion: 'sandpool.dev/v1alpha1',
          kind: 'SandboxPool',
          metadata: {
            name,
            namespace: OWNER.namespace,
            creationTimestamp: new Date(clock.now()).toISOString(),
          },
          spec: { overrides: { image: 'busybox' }, replicas },
        }),
      scale: (replicas: number) =>
        api.put(`${POOLS}/p`, { ...read(), spec: { ...read().spec, replicas } }),
      ready: (name = 'p') => {
        const condition = readyOf(read(name));
        return condition && `${condition.status} ${condition.reason}`;
      },
      used: async (resource: 'pools' | 'replicas' = 'replicas') =>
        (await coordination.used(OWNER))[resource],
    };
  };

  it('is not used beyond the quota, gives the reason, and is used once the quota is raised', async () => {
    const { make, aReplica, ready, read, used, quota } = world({ replicas: 3 });
    const { records, pools } = await aReplica();
    make(4);

    await eventually(() => ready() === 'False QuotaExceeded', 'it says so');
    expect(readyOf(read())?.message).to.include(
      `${OWNER.team}/default may have 3 replicas, 0 are used, and this needs 4 more`,
    );
    expect([read().resolved, pools.size, await used(), await used('pools')]).to.deep.equal([
      undefined,
      0,
      0,
      0,
    ]);

    quota.replicas = 4;
    records.pools.lookAgain(OWNER.namespace);
    await eventually(
      () => pools.get('p')?.replicas === 4 && ready() === 'True Usable',
      'it is used',
    );
    expect([read().resolved?.replicas, await used(), await used('pools')]).to.deep.equal([4, 4, 1]);
  });

  it('is not used if its owner has the maximum number of pools', async () => {
    const { make, aReplica, ready, used } = world({ pools: 1 });
    const { pools } = await aReplica();
    make(1);
    await eventually(() => pools.size === 1, 'the first is used');
    make(0, 'q');

    await eventually(() => ready('q') === 'False QuotaExceeded', 'it says so');
    expect([pools.has('q'), await used('pools'), await used()]).to.deep.equal([false, 1, 1]);
  });

  it('keeps its granted size through other writes, until more is granted', async () => {
    const { make, scale, aReplica, ready, read, used, quota } = world({ replicas: 3 });
    const { records, pools } = await aReplica();
    make(2);
    await eventually(() => pools.get('p')?.replicas === 2, 'it is used');
    scale(5);

    await eventually(() => ready() === 'False QuotaExceeded', 'it says so');
    expect(pools.get('p')).to.deep.include({ replicas: 2, requested: 5 });
    await eventually(
      async () =>
        records.pools.update({ ...pools.get('p')!, labels: { x: 'y' } }).then(
          () => true,
          () => false,
        ),
      'something else is written',
    );
    expect([read().spec.replicas, read().resolved?.replicas, await used()]).to.deep.equal([
      5, 2, 2,
    ]);

    quota.replicas = 5;
    records.pools.lookAgain(OWNER.namespace);
    await eventually(() => pools.get('p')?.replicas === 5 && ready() === 'True Usable', 'it grows');
    expect(pools.get('p')).to.not.have.property('requested');
    expect([read().resolved?.replicas, await used()]).to.deep.equal([5, 5]);
  });

  it('shrinks at once, and its usage with it', async () => {
    const { make, scale, aReplica, used } = world({});
    const replica = await aReplica({
      reserve: async () => {
        throw unavailable('Redis is away');
      },
    });
    const granting = await aReplica();
    make(4);
    await eventually(() => granting.pools.get('p')?.replicas === 4, 'it is used');
    scale(1);

    await eventually(() => replica.pools.get('p')?.replicas === 1, 'it is smaller');
    await eventually(async () => (await used()) === 1, 'and counts so');
  });

  it('counts once, whichever replica comes first', async () => {
    const { make, scale, aReplica, used } = world({});
    const replicas = [await aReplica(), await aReplica(), await aReplica()];
    make(2);
    await eventually(
      () => replicas.every(({ pools }) => pools.get('p')?.replicas === 2),
      'all use it',
    );
    scale(7);
    await eventually(
      () => replicas.every(({ pools }) => pools.get('p')?.replicas === 7),
      'all see it grow',
    );

    await eventually(
      async () => (await used()) === 7 && (await used('pools')) === 1,
      'it counts once',
    );
  });

  it('waits while Redis is unavailable, and reports it', async () => {
    const { make, aReplica, ready, coordination } = world({});
    let isAway = true;
    const replica = await aReplica({
      reserve: async (...call) => {
        if (isAway) throw unavailable('Redis is away');
        return await coordination.reserve(...call);
      },
    });
    make(1);
    await eventually(() => ready() === 'False QuotaUnknown', 'it says so');
    expect(replica.pools.size).to.equal(0);

    isAway = false;
    await eventually(() => replica.pools.size === 1 && ready() === 'True Usable', 'it is used');
  });

  for (const [what, error, left] of [
    [
      'gives back what it reserved where the write is refused',
      new ApiRefused({
        status: 403,
        reason: 'Forbidden',
        message: '',
        causes: [],
        retryAfterSeconds: undefined,
      }),
      0,
    ],
    [
      'gives back what it reserved where the write could not be sent in time',
      new LeaseLost('late'),
      0,
    ],
    ['has what may have been written settled later', new OutcomeUnknown('no answer'), 3],
  ] as const) {
    it(what, async () => {
      const { api, make, aReplica, used, settledLater } = world({});
      let tried = 0;
      const client = {
        ...api.client,
        replace: async () => {
          tried += 1;
          throw error;
        },
      };
      await aReplica({}, { ...api.server, lane: () => client });
      make(3);

      await eventually(() => tried === (error instanceof LeaseLost ? 2 : 1), 'it is tried');
      await eventually(async () => (await used()) === left, 'and counts as far as it may be there');
      expect(settledLater).to.deep.include(OWNER);
    });
  }

  it('never exceeds the quota under concurrent writes and failures', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const edits = fc.array(
      fc.record({ name: fc.constantFrom(...names), replicas: fc.nat({ max: 9 }) }),
      { minLength: 6, maxLength: 12 },
    );
    const fates = fc.array(
      fc.constantFrom('lands', 'lands', 'refused', 'lost before', 'lost after'),
      { minLength: 8, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(edits, fates, async (all, fate) => {
        const { api, make, aReplica, read, used, quota, coordination } = world({
          replicas: 12,
          pools: 3,
        });
        const most = { pools: 0, replicas: 0 };
        let writes = 0;
        const replace: typeof api.client.replace = async (path, body, options) => {
          const now = fate[writes++ % fate.length];
          if (now === 'refused')
            throw new ApiRefused({
              status: 403,
              reason: 'Forbidden',
              message: '',
              causes: [],
              retryAfterSeconds: undefined,
            });
          if (now === 'lost before') throw new OutcomeUnknown('no answer');
          const stored = await api.client.replace(path, body, options);
          const granted = names.flatMap((name) => read(name)?.resolved?.replicas ?? []);
          most.pools = Math.max(most.pools, granted.length);
          most.replicas = Math.max(
            most.replicas,
            granted.reduce((sum, each) => sum + each, 0),
          );
          if (now === 'lost after') throw new OutcomeUnknown('no answer');
          return stored;
        };
        const server = { ...api.server, lane: () => ({ ...api.client, replace }) };
        const replicas = [await aReplica({}, server), await aReplica({}, server)];
        for (const [i, edit] of all.entries()) {
          const before = api.objects.get(`${POOLS}/${edit.name}`) as unknown as
            | PoolObject
            | undefined;
          if (before)
            api.put(`${POOLS}/${edit.name}`, {
              ...before,
              spec: { ...before.spec, replicas: edit.replicas },
            });
          else make(edit.replicas, edit.name);
          if (i % 3 === 2) await standsStill(() => 1 + writes, 'what is written');
          for (const { records } of replicas) records.pools.lookAgain();
        }
        await standsStill(() => 1 + writes, 'what is written');
        expect(most.pools).to.be.at.most(quota.pools);
        expect(most.replicas).to.be.at.most(quota.replicas);
        const granted = names.reduce((sum, name) => sum + (read(name)?.resolved?.replicas ?? 0), 0);
        await eventually(async () => (await used()) >= granted, 'what was granted is counted');
        expect(await used()).to.be.at.most(quota.replicas);
        expect((await coordination.used(OWNER)).pools).to.be.at.most(quota.pools);
        for (const stop of stops.splice(0)) await stop();
      }),
      { numRuns: runs(12) },
    );
  });
});
