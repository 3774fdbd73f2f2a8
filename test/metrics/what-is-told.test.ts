import { expect } from 'chai';
import { LeaseLost, OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { measuredDriver } from '../../src/daemon/metrics/measured-driver.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { measureMirror } from '../../src/k8s/api/mirror-metrics.ts';
import { Reflector } from '../../src/k8s/api/reflector.ts';
import { Mirror } from '../../src/model/mirror/mirror.ts';
import { aDatabase } from '../embedded/store/a-database.ts';
import { aClientOf, aFakeApiServer, json } from '../k8s/a-fake-api-server.ts';
import { FakeCollection, type FakeObject } from '../k8s/a-fake-collection.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { anOrder } from '../support/builders/instance-orders.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('the metrics of claims', () => {
  it('count each by outcome, with its steps', async () => {
    const metrics = new MemoryMetrics();
    const { claim, pool, supervisor, clock } = await aSupervisor({
      metrics,
      pool: { replicas: 2 },
      sandboxLimit: 1,
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'two idle');

    await claim(alice, { poolName: pool.name });
    await rejection(claim(alice, { poolName: pool.name })); // its quota is one
    await rejection(claim(alice, { poolName: 'nowhere' }));
    const gone = new AbortController();
    const waiting = rejection(claim(alice, { poolName: pool.name, waitMs: 60_000 }, gone.signal));
    gone.abort(new Error('the client left'));
    clock.advance(61_000);
    await waiting;

    for (const [result, count] of [
      ['claimed', 1],
      ['refused', 1],
      ['exhausted', 0],
      ['failed', 0],
    ] as const)
      expect(metrics.counted('sandpool_claims_total', { result }), result).to.equal(count);
    expect(
      metrics.counted('sandpool_claims_total', { result: 'quota' }) +
        metrics.counted('sandpool_claims_total', { result: 'gone' }),
    ).to.equal(2);
    expect(metrics.observed('sandpool_claim_step_seconds', { step: 'write' })).to.have.length(1);
    expect(
      metrics.observed('sandpool_claim_step_seconds', { step: 'admit' }),
    ).to.have.length.at.least(2);
  });

  it('count claims without an idle instance', async () => {
    const metrics = new MemoryMetrics();
    const { claim, pool } = await aSupervisor({ metrics, pool: { replicas: 0 } });

    await rejection(claim(alice, { poolName: pool.name }));

    expect(metrics.counted('sandpool_claims_total', { result: 'exhausted' })).to.equal(1);
    expect(metrics.observed('sandpool_claim_seconds', { result: 'exhausted' })).to.have.length(1);
  });
});

describe('the metrics of state machines', () => {
  it('count moves and starts, and measure late deadlines', async () => {
    const metrics = new MemoryMetrics();
    const { supervisor, pool, clock } = await aSupervisor({ metrics, pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one idle');

    expect(
      metrics.counted('sandpool_transitions_total', { kind: 'sandbox', state: 'idle' }),
    ).to.equal(1);
    expect(
      metrics.counted('sandpool_transitions_total', { kind: 'pool', state: 'Ready' }),
    ).to.equal(1);
    expect(metrics.observed('sandpool_start_seconds', {})).to.have.length(1);
    clock.advance(3_600_000);
    await eventually(
      () => metrics.observed('sandpool_deadline_late_seconds', {}).length > 0,
      'a deadline was handed out',
    );
  });

  for (const [cause, spoil] of [
    [
      'refused',
      (driver: FakeSandboxDriver) => {
        driver.failNext('launch', new Error('no such image'));
      },
    ],
    [
      'died',
      (driver: FakeSandboxDriver) => {
        driver.startsByItself = false;
      },
    ],
  ] as const) {
    it(`count a failed start because it ${cause === 'died' ? 'died' : 'was refused'}`, async () => {
      const metrics = new MemoryMetrics();
      const driver = new FakeSandboxDriver();
      spoil(driver);
      const { supervisor } = await aSupervisor({ metrics, driver, pool: { replicas: 1 } });
      if (cause === 'died') {
        await eventually(() => driver.calls.some((call) => call.startsWith('launch')), 'a launch');
        await eventually(() => supervisor.ids().length > 0, 'an instance');
        for (const id of supervisor.ids()) driver.end(id);
      }

      await eventually(
        () => metrics.counted('sandpool_start_failures_total', { cause }) === 1,
        'it counts',
      );
    });
  }
});

describe('the metrics of a driver', () => {
  it('count each call by outcome and error', async () => {
    const metrics = new MemoryMetrics();
    const fake = new FakeSandboxDriver();
    const driver = measuredDriver(fake, metrics);
    const order = anOrder();
    const record = await driver.launch(order, () => true);

    for (const error of [
      new RecordConflict('moved'),
      new OutcomeUnknown('cut'),
      new LeaseLost('over'),
      new Error('broken'),
    ]) {
      fake.failNext('retire', error);
      expect(
        await rejection(
          driver.retire(order.record.id, record.revision, record.poolOwner.namespace),
        ),
      ).to.equal(error);
    }
    await driver.retire(order.record.id, record.revision, record.poolOwner.namespace);

    for (const outcome of ['done', 'conflict', 'unknown', 'fenced', 'failed'])
      expect(
        metrics.counted('sandpool_driver_calls_total', { operation: 'retire', outcome }),
        outcome,
      ).to.equal(1);
    expect(metrics.observed('sandpool_driver_seconds', { operation: 'retire' })).to.have.length(5);
    expect(metrics.counted('sandpool_conflicts_total', { operation: 'retire' })).to.equal(1);
    expect(metrics.counted('sandpool_fenced_writes_total', {})).to.equal(1);
  });
});

describe('the metrics of the store', () => {
  const redis = onRedis();

  it('include each statement of the database', async () => {
    const metrics = new MemoryMetrics();
    const file = await aDatabase({ metrics });
    try {
      await file.database.run('apiKeys.list');
      await rejection(file.database.run('apiKeys.create')); // without what it needs
      for (const [operation, failures] of [
        ['apiKeys.list', 0],
        ['apiKeys.create', 1],
      ] as const) {
        expect(
          metrics.observed('sandpool_store_seconds', { store: 'sqlite', operation }),
        ).to.have.length(1);
        expect(
          metrics.counted('sandpool_store_failures_total', { store: 'sqlite', operation }),
        ).to.equal(failures);
      }
    } finally {
      await file.close();
    }
  });

  it('include each script of Redis, even without an answer', async () => {
    const metrics = new MemoryMetrics();
    const link = new RedisLink({
      settings: redis().settings,
      name: 'test',
      log: quietLog,
      metrics,
    });
    await link.start();
    await link.run('begin_marks', ['x'], []);
    link.stop();
    await rejection(link.run('begin_marks', ['x'], []));

    expect(
      metrics.observed('sandpool_store_seconds', { store: 'redis', operation: 'begin_marks' }),
    ).to.have.length(2);
    expect(
      metrics.counted('sandpool_store_failures_total', {
        store: 'redis',
        operation: 'begin_marks',
      }),
    ).to.equal(1);
  });

  it('include each request to the API server by kind, and do not count a refusal as a failure', async () => {
    const metrics = new MemoryMetrics();
    const statuses = [200, 409, 500];
    const api = await aFakeApiServer((_request, response) => {
      json(response, { kind: 'Status' }, statuses.shift() ?? 200);
    });
    const server = aClientOf(api.port, { metrics });
    try {
      for (const path of [
        '/api/v1/namespaces/a/pods/x',
        '/apis/sandpool.dev/v1alpha1/namespaces/a/sandboxes/y',
        '/apis/sandpool.dev/v1alpha1/sandboxtemplates/z',
      ]) {
        await server
          .lane('claims')
          .replace(path, {})
          .catch(() => undefined);
      }

      const seen = ['PUT pods', 'PUT sandboxes', 'PUT sandboxtemplates'].map((operation) => [
        metrics.observed('sandpool_store_seconds', { store: 'api-server', operation }).length,
        metrics.counted('sandpool_store_failures_total', { store: 'api-server', operation }),
      ]);
      expect(seen).to.deep.equal([
        [1, 0],
        [1, 0],
        [1, 1],
      ]);
    } finally {
      await server.close();
      await api.close();
    }
  });

  it('include the time since a mirror last received something', async () => {
    const metrics = new MemoryMetrics();
    const collection = new FakeCollection();
    const api = await aFakeApiServer((request, response) => {
      collection.answer(request, response);
    });
    const server = aClientOf(api.port);
    const reflector = new Reflector<number>({
      api: server.lane('background'),
      watches: server.lane('watches'),
      path: '/apis/things',
      log: quietLog,
      trim: (object) => (object as FakeObject).value,
      mirror: new Mirror({ report: () => undefined }),
    });
    measureMirror(metrics, 'things', () => [reflector.report()]);
    const silence = (): number | undefined =>
      metrics.shown('sandpool_mirror_silence_seconds', { mirror: 'things' });
    try {
      expect(silence(), 'before it was ever whole').to.equal(undefined);
      reflector.start();
      await reflector.synced();
      expect(silence()).to.be.at.least(0);
      expect(metrics.shown('sandpool_mirror_restarts_total', { mirror: 'things' })).to.equal(0);
    } finally {
      await reflector.stop();
      await server.close();
      await api.close();
    }
  });
});
