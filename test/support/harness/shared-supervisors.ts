import { v7 } from 'uuid';
import { EventFeed } from '../../../src/actors/runtime/event-feed.ts';
import type { ShardParticipant } from '../../../src/actors/runtime/shard-participant.ts';
import { Supervisor } from '../../../src/actors/sandbox/supervisor.ts';
import type { Clock } from '../../../src/contracts/clock.ts';
import type { Coordination } from '../../../src/contracts/coordination.ts';
import type { History } from '../../../src/contracts/history.ts';
import type { Records } from '../../../src/contracts/record-store.ts';
import type { PoolRecord } from '../../../src/model/pools/pool.ts';
import { SHARDS } from '../../../src/model/shards.ts';
import { claimSandbox } from '../../../src/actors/claim/claim-sandbox.ts';
import { findClaimByKey } from '../../../src/actors/claim/find-claim-by-key.ts';
import { PendingRequests } from '../../../src/actors/claim/pending-requests.ts';
import { aPool } from '../builders/a-pool.ts';
import { aPolicy } from './a-supervisor.ts';
import { GivenLeases } from '../fakes/given-leases.ts';
import { FakeSandboxDriver } from '../fakes/fake-sandbox-driver.ts';
import { limitsOf } from '../fakes/memory-quotas.ts';
import { MemoryHistory, MemoryPools } from '../fakes/memory-records.ts';
import { noEnvs } from '../fakes/no-envs.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { SharedDriver } from '../fakes/shared-driver.ts';
import { TestClock } from '../fakes/test-clock.ts';
import { testClaimEnv } from '../builders/test-claim-env.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/** A daemon's actors, over stores shared with others. */
export type SharedReplica = Awaited<ReturnType<typeof aReplica>>;

export const sharedStores = async (
  options: {
    readonly pool?: Partial<PoolRecord>;
    readonly startsByItself?: boolean;
    readonly images?: readonly string[];
  } = {},
) => {
  const clock = new TestClock(Date.now());
  const pools = new MemoryPools();
  const pool = await pools.create(aPool(options.pool));
  const truth = new FakeSandboxDriver({
    reportsWrites: true,
    now: () => clock.now(),
    startsByItself: options.startsByItself ?? true,
    images: options.images,
  });
  return {
    clock,
    pools,
    pool,
    truth,
    history: new MemoryHistory(),
    driver: new SharedDriver(truth),
  };
};

export interface ReplicaStores {
  readonly clock: Clock;
  readonly pools: Records<PoolRecord>;
  readonly history: History;
  readonly driver: SharedDriver;
}

/** Leads what the test gives it. */
export const aReplica = async (
  stores: ReplicaStores,
  shared: Coordination,
  options: { readonly sandboxLimit?: number; readonly participant?: ShardParticipant } = {},
) => {
  const { clock, pools, history } = stores;
  const leases = new GivenLeases(shared.replicas());
  const coordination: Coordination = {
    ...shared,
    lease: (shard) => leases.lease(shard),
    follow: (listener) => leases.follow(listener),
    giveUp: (shard) => leases.giveUp(shard),
    leave: () => {
      leases.leave();
    },
    join: () => {
      leases.join();
    },
  };
  const driver = stores.driver.view();
  const events = new EventFeed({ clock, log: quietLog, history, coordination });
  const supervisor = new Supervisor({
    watchers: { log: quietLog, metrics: silentMetrics, events },
    driver,
    pools,
    history,
    coordination,
    clock,
    policy: aPolicy(),
    newId: () => v7(),
    sharding: options.participant ? { participant: options.participant } : undefined,
  });
  await supervisor.start();
  let epoch = 0;
  const lead = (): void => {
    epoch += 1;
    for (let shard = 0; shard < SHARDS; shard++) leases.give(shard, epoch);
  };
  const die = (): void => {
    for (let shard = 0; shard < SHARDS; shard++) leases.take(shard, 'gone');
  };
  const pendingRequests = new PendingRequests();
  const claim = claimSandbox({
    metrics: silentMetrics,
    envs: noEnvs,
    supervisor,
    driver,
    claimEnv: testClaimEnv,
    coordination,
    clock,
    pendingRequests,
    quotaLimits: limitsOf({ sandboxes: options.sandboxLimit ?? 1_000 }),
    background: (_name, work) => {
      void work;
    },
  });
  return {
    supervisor,
    driver,
    events,
    coordination,
    leases,
    lead,
    die,
    claim,
    pendingRequests,
    found: findClaimByKey({ supervisor, clock, pendingRequests }),
  };
};
