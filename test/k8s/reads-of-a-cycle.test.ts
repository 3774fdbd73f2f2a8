import { expect } from 'chai';
import { v7 } from 'uuid';
import { Supervisor } from '../../src/actors/sandbox/supervisor.ts';
import { podPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import { claimSandbox } from '../../src/actors/claim/claim-sandbox.ts';
import { deleteSandbox } from '../../src/actors/sandbox/commands/delete-sandbox.ts';
import { PendingRequests } from '../../src/actors/claim/pending-requests.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice, aPolicy } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { MemoryHistory, MemoryPools } from '../support/fakes/memory-records.ts';
import { noEnvs } from '../support/fakes/no-envs.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { anUnwatchedDriver } from './a-driver.ts';
import { MemoryApi, type StoredObject } from './a-memory-api.ts';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';
import { silentEvents } from '../../src/actors/runtime/event-feed.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/** As it is set by default. */
const GRACE_SECONDS = 5;
const CYCLES = 3;

/** A daemon's actors over Pods that a kubelet runs, and ends when their grace is over. */
const aWorld = async () => {
  const api = new MemoryApi();
  const { driver, clock } = anUnwatchedDriver(api, { terminationGraceSeconds: GRACE_SECONDS });
  api.now = () => clock.now();
  const pools = new MemoryPools();
  const pool = await pools.create(
    aPool({ replicas: 1, definition: aDefinition({ image: 'registry.invalid/sandbox:1' }) }),
  );
  const history = new MemoryHistory();
  const coordination = aCoordination(clock);
  const supervisor = new Supervisor({
    watchers: { log: quietLog, metrics: silentMetrics, events: silentEvents },
    driver,
    pools,
    history,
    coordination,
    clock,
    policy: aPolicy(),
    newId: () => v7(),
  });
  await supervisor.start();
  const claim = claimSandbox({
    metrics: silentMetrics,
    envs: noEnvs,
    supervisor,
    driver,
    claimEnv: testClaimEnv,
    coordination,
    clock,
    pendingRequests: new PendingRequests(),
    quotaLimits: limitsOf({ sandboxes: 10 }),
    background: (_name, work) => {
      void work;
    },
  });

  const pods = (): readonly (readonly [string, StoredObject & { readonly status?: object }])[] =>
    [...api.objects].filter(([path]) => path.includes('/pods/'));
  const runPods = (): void => {
    for (const [path, pod] of pods()) {
      if (pod.status) continue;
      api.put(path, {
        ...pod,
        spec: { nodeName: 'n1', containers: [{ name: 'main' }] },
        status: {
          phase: 'Running',
          startTime: '2026-01-01T00:00:00Z',
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      });
    }
  };
  const idle = (): Promise<void> =>
    eventually(() => {
      runPods();
      return supervisor.pools.get(pool.uid)?.counts.idle === 1;
    }, 'one is idle');
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
  };
  const endPod = (id: string): void => {
    api.remove(podPath(alice.namespace, podNameOf(id)));
  };
  return { api, clock, supervisor, history, claim, idle, settled, endPod, driver };
};

describe('a cycle of claim, use and end with the default grace period', () => {
  it('needs no uncached reads', async () => {
    const { api, clock, supervisor, history, claim, idle, settled, endPod, driver } =
      await aWorld();
    await idle();
    api.asked.length = 0;

    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const { id } = await claim(alice, { poolName: 'default' });
      await deleteSandbox({ supervisor, clock })(alice, id);
      for (let second = 0; second < GRACE_SECONDS; second++) {
        clock.advance(1_000);
        await settled();
      }
      endPod(id);
      await eventually(() => supervisor.sandbox(id) === undefined, 'it is closed');
      await idle();
    }

    expect(api.asked.filter((call) => call.startsWith('GET'))).to.deep.equal([]);
    expect(history.finished.map(({ endReason }) => endReason)).to.deep.equal(
      Array.from({ length: CYCLES }, () => 'deleted'),
    );
    await driver.stop();
  });
});
