import { v7 } from 'uuid';
import type { ShardParticipant } from '../../../src/actors/runtime/shard-participant.ts';
import { EventFeed } from '../../../src/actors/runtime/event-feed.ts';
import { Supervisor } from '../../../src/actors/sandbox/supervisor.ts';
import { silentMetrics, type Metrics } from '../../../src/contracts/metrics.ts';
import type { PullSecrets } from '../../../src/contracts/pull-secrets.ts';
import type { PoolPolicy } from '../../../src/machines/pool/arithmetic.ts';
import type { PoolRecord } from '../../../src/model/pools/pool.ts';
import { claimSandbox } from '../../../src/actors/claim/claim-sandbox.ts';
import { findClaimByKey } from '../../../src/actors/claim/find-claim-by-key.ts';
import { PendingRequests } from '../../../src/actors/claim/pending-requests.ts';
import type { Caller } from '../../../src/model/tenant.ts';
import { aCoordination } from '../fakes/a-coordination.ts';
import { FakeSandboxDriver } from '../fakes/fake-sandbox-driver.ts';
import { aPool } from '../builders/a-pool.ts';
import { ALICE } from '../builders/instance-orders.ts';
import { limitsOf } from '../fakes/memory-quotas.ts';
import { MemoryHistory, MemoryPools } from '../fakes/memory-records.ts';
import { noEnvs } from '../fakes/no-envs.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { TestClock } from '../fakes/test-clock.ts';
import { testClaimEnv } from '../builders/test-claim-env.ts';

export const alice: Caller = { ...ALICE, role: 'user', keyId: 'k1' };

export const aPolicy = (part: Partial<PoolPolicy> = {}): PoolPolicy => ({
  replicaSemantics: 'total',
  refill: { perSecond: 1_000, burst: 1_000, inFlight: 1_000 },
  breaker: { failures: 3, firstPauseMs: 5_000, maxPauseMs: 300_000 },
  ...part,
});

/** With a driver without processes, and a clock that tests move. */
export const aSupervisor = async (
  options: {
    readonly pool?: Partial<PoolRecord>;
    readonly policy?: Partial<PoolPolicy>;
    readonly sandboxLimit?: number;
    readonly driver?: FakeSandboxDriver;
    readonly images?: readonly string[];
    readonly metrics?: Metrics;
    readonly participant?: ShardParticipant;
    readonly pullSecrets?: Pick<PullSecrets, 'forget'>;
  } = {},
) => {
  const clock = new TestClock();
  const { images = [] } = options;
  const driver = options.driver ?? new FakeSandboxDriver({ now: () => clock.now(), images });
  const pools = new MemoryPools();
  const history = new MemoryHistory();
  const coordination = aCoordination(clock);
  const pool = await pools.create(aPool(options.pool));
  const events = new EventFeed({ clock, log: quietLog, history, coordination });
  const supervisor = new Supervisor({
    watchers: { log: quietLog, metrics: options.metrics ?? silentMetrics, events },
    driver,
    pools,
    history,
    coordination,
    clock,
    policy: aPolicy(options.policy),
    newId: () => v7(),
    sharding: options.participant ? { participant: options.participant } : undefined,
    passwords: options.pullSecrets ? { pullSecrets: options.pullSecrets } : undefined,
  });
  await supervisor.start();
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
    ...(options.metrics ? { metrics: options.metrics } : {}),
    quotaLimits: limitsOf({ sandboxes: options.sandboxLimit ?? 1_000 }),
    background: (_name, work) => {
      void work;
    },
  });
  return {
    supervisor,
    claimEnv: testClaimEnv,
    driver,
    pools,
    history,
    coordination,
    clock,
    events,
    pool,
    claim,
    pendingRequests,
    found: findClaimByKey({ supervisor, clock, pendingRequests }),
  };
};
