import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { v7 } from 'uuid';
import { startRedis } from '../../../local-cluster/redis-server.ts';
import type { Coordination } from '../../../src/contracts/coordination.ts';
import { silentLog } from '../../../src/contracts/log.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { ApiClient, ApiServer, ListQuery } from '../../../src/k8s/api/api-calls.ts';
import { poolResource } from '../../../src/k8s/records/pool-resource.ts';
import { ResourceRecords } from '../../../src/k8s/records/resource-records.ts';
import { API_VERSION } from '../../../src/k8s/records/resource.ts';
import { Seals } from '../../../src/k8s/records/seals.ts';
import { rewritten } from '../../../src/k8s/sandboxes/sandbox-resource.ts';
import { usageRecords } from '../../../src/k8s/records/usage-records.ts';
import {
  CLOSED_BREAKER,
  DEFAULT_UPDATE_STRATEGY,
  type PoolRecord,
} from '../../../src/model/pools/pool.ts';
import type { InstanceDefinition } from '../../../src/model/templates/template.ts';
import type { Tenant } from '../../../src/model/tenant.ts';
import { redisCoordination } from '../../../src/redis/coordination.ts';
import type { Figure } from '../../figure.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/** Its records need none. */
const NO_SEALS: Parameters<typeof rewritten>[1]['seals'] = {
  sealed: (_kind, _place, { content }) => content,
};

const TENANTS = 1_000;
const POOLS = 10_000;
const CLAIMED = 10_000;
const PAGE = 250;
/** What the API server takes for a page. */
const PAGE_MS = 10;
/** Claims of so many tenants are repeated at this pace until they are served. */
const CLAIMING = 50;
const AGAIN_MS = 50;
const LIMIT_MS = 60_000;

/**
 * The way to usage that is made anew, with real classes over a real Redis and the pages that an API
 * server would send: one replica does it all.
 */
export const recount: Figure = {
  name: 'recount',
  about: `Redis restarted with ${POOLS} pools of ${TENANTS} tenants and ${CLAIMED} claimed sandboxes, one replica: claims served again after`,
  run: async (bench) => {
    const records = await simulatedRecords();
    const [first, all, p99]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      const times = await restarted(records);
      first.push(times.claiming);
      all.push(times.all);
      p99.push(times.p99);
      bench.say(
        `recount: ${CLAIMING} tenants that claim ${times.claiming.toFixed(2)} s, all ${times.all.toFixed(2)} s, event loop p99 ${times.p99.toFixed(1)} ms`,
      );
    }
    await records.stop();
    const which = `Redis restarted, ${POOLS} pools of ${TENANTS} tenants`;
    return [
      {
        name: `${which}: claims of ${CLAIMING} tenants served again after`,
        unit: 's',
        better: 'less',
        ours: first,
        reach: 5,
        beyond: 3,
      },
      {
        name: `${which}: usage of all known after`,
        unit: 's',
        better: 'less',
        ours: all,
        reach: 5,
        beyond: 3,
      },
      {
        name: `${which}: event loop p99 meanwhile`,
        unit: 'ms',
        better: 'less',
        ours: p99,
        reach: 100,
        beyond: 50,
      },
    ];
  },
};

type SimulatedRecords = Awaited<ReturnType<typeof simulatedRecords>>;

/** Seconds since Redis answered again, and milliseconds. */
const restarted = async ({
  usage,
  tenants,
}: SimulatedRecords): Promise<{
  readonly claiming: number;
  readonly all: number;
  readonly p99: number;
}> => {
  const redis = await startRedis({ syncs: true });
  const { coordination, start, stop } = redisCoordination({
    metrics: silentMetrics,
    settings: redis.settings,
    replica: 'bench',
    usage,
    keptAnswers: { totalBytes: 268_435_456, tenantBytes: 33_554_432 },
    clock: systemClock(),
    log: silentLog,
  });
  await start();
  try {
    await servedAll(coordination, tenants); // as it was before
    await redis.kill();
    await redis.restart();
    const loop = monitorEventLoopDelay({ resolution: 1 });
    loop.enable();
    const began = performance.now();
    await servedAll(coordination, tenants.slice(0, CLAIMING));
    const claiming = performance.now() - began;
    loop.disable();
    await servedAll(coordination, tenants);
    return {
      claiming: claiming / 1_000,
      all: (performance.now() - began) / 1_000,
      p99: loop.percentile(99) / 1e6,
    };
  } finally {
    await stop();
    await redis.stop();
  }
};

const servedAll = async (coordination: Coordination, tenants: readonly Tenant[]): Promise<void> => {
  const until = performance.now() + LIMIT_MS;
  let waiting = tenants;
  while (waiting.length > 0) {
    const next: Tenant[] = [];
    for (let at = 0; at < waiting.length; at += CLAIMING) {
      const some = waiting.slice(at, at + CLAIMING);
      const served = await Promise.all(
        some.map((owner) =>
          coordination
            .admitClaim({ pool: { uid: 'p', owner }, instance: v7(), limit: 1e6, idle: 1 })
            .then(
              () => true,
              () => false,
            ),
        ),
      );
      next.push(...some.filter((_, n) => served[n] !== true));
    }
    waiting = next;
    if (performance.now() > until) throw new Error(`${waiting.length} tenants are not served`);
    if (waiting.length > 0) await delay(AGAIN_MS);
  }
};

/** Tells nothing until it is ended. */
const silent = (signal: AbortSignal): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      await once(signal, 'abort');
      return { done: true, value: undefined };
    },
  }),
});

/** Usage by the records that an API server would send in pages of JSON. */
const simulatedRecords = async () => {
  const tenants = Array.from({ length: TENANTS }, (_, n): Tenant => ({
    namespace: `team-${n}`,
    team: `team-${n}`,
    user: 'u',
  }));
  const seals = new Seals({
    key: randomBytes(32),
    since: Number.NEGATIVE_INFINITY,
    now: () => Date.now(),
  });
  const resource = poolResource({
    template: () => undefined,
    instanceType: () => undefined,
    check: () => undefined,
    teamOf: (namespace) => namespace,
    now: () => Date.now(),
    seals,
    grants: { ask: async () => ({ reason: 'NotAsked', message: '' }) },
  });
  const ownerOf = (n: number): Tenant =>
    tenants[n % TENANTS] ?? { namespace: '', team: '', user: '' };
  const pools = Array.from({ length: POOLS }, (_, n) =>
    poolObject(resource, aPool(n, ownerOf(n)), n),
  );
  const sandboxes = Array.from({ length: CLAIMED }, (_, n) => claimedObject(ownerOf(n), n));
  const [poolPages, sandboxPages, poolsIn, sandboxesIn] = [
    pagesOf(pools),
    pagesOf(sandboxes),
    pagesByTenant(tenants, pools),
    pagesByTenant(tenants, sandboxes),
  ];
  const read = async (pages: readonly string[], at: number): Promise<unknown> => {
    await delay(PAGE_MS);
    return JSON.parse(pages[at] ?? '{}') as unknown;
  };
  const listed = (path: string): readonly string[] => {
    const namespace = /namespaces\/([^/]+)/.exec(path)?.[1];
    const [all, apart] = path.endsWith('/sandboxpools')
      ? [poolPages, poolsIn]
      : [sandboxPages, sandboxesIn];
    return namespace === undefined ? all : (apart.get(namespace) ?? []);
  };
  const api = {
    list: (path: string, query: ListQuery) => read(listed(path), Number(query.continue ?? 0)),
    watch: (_path: string, _query: object, signal: AbortSignal) => silent(signal),
  } as unknown as ApiClient; // nothing is written or read by name
  const server: ApiServer = {
    lane: () => api,
    calm: async () => undefined,
    close: async () => undefined,
  };
  const records = new ResourceRecords({
    metrics: silentMetrics,
    api: server,
    resource,
    log: silentLog,
    now: () => Date.now(),
    outdated: () => undefined,
  });
  await records.watch(() => undefined);
  return { tenants, usage: usageRecords(api, records), stop: () => records.stop() };
};

/** Object n is of tenant n, modulo their number; by namespace. */
const pagesByTenant = (
  tenants: readonly Tenant[],
  objects: readonly object[],
): ReadonlyMap<string, readonly string[]> =>
  new Map(
    tenants.map(({ namespace }, tenant) => [
      namespace,
      pagesOf(objects.filter((_, n) => n % TENANTS === tenant)),
    ]),
  );

const pagesOf = (objects: readonly object[]): readonly string[] => {
  const count = Math.ceil(objects.length / PAGE);
  return Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      metadata: { resourceVersion: '1', ...(at + 1 < count ? { continue: String(at + 1) } : {}) },
      items: objects.slice(at * PAGE, (at + 1) * PAGE),
    }),
  );
};

const DEFINITION: InstanceDefinition = {
  containers: [
    {
      name: 'main',
      image: 'registry.example/agent:1',
      command: ['sleep'],
      args: ['infinity'],
      env: { PATH: '/usr/bin' },
    },
  ],
  network: 'none',
  startupTimeoutMs: 60_000,
  idleTimeoutMs: 0,
  maxLifetimeMs: 0,
  cpu: '1',
  memory: '128Mi',
} as unknown as InstanceDefinition;

const aPool = (n: number, owner: Tenant): Omit<PoolRecord, 'revision'> => ({
  uid: v7(),
  name: `pool-${n}`,
  owner,
  createdAt: 1,
  replicas: 2,
  source: { templateName: 'default' },
  updateStrategy: DEFAULT_UPDATE_STRATEGY,
  templateVersion: '1',
  labels: {},
  annotations: {},
  definition: DEFINITION,
  updateRevision: 'r1',
  breaker: CLOSED_BREAKER,
  deleting: false,
});

const poolObject = (
  resource: ReturnType<typeof poolResource>,
  pool: Omit<PoolRecord, 'revision'>,
  n: number,
): object => {
  const metadata = {
    name: pool.name,
    namespace: pool.owner.namespace,
    uid: v7(),
    resourceVersion: String(n + 1),
    creationTimestamp: new Date().toISOString(),
  };
  const object = { apiVersion: API_VERSION, kind: 'SandboxPool', metadata, spec: {} };
  const { labels = {}, ...written } = resource.write(pool, object);
  return { ...object, metadata: { ...metadata, labels }, ...written };
};

const claimedObject = (owner: Tenant, n: number): object =>
  rewritten(
    {
      id: v7(),
      revision: String(n + 1),
      state: 'claimed',
      poolUid: 'p',
      poolName: 'pool',
      poolOwner: owner,
      createdAt: 1,
      updateRevision: 'r1',
      cpu: '1',
      memory: '128Mi',
      containerImages: { main: 'registry.example/agent:1' },
      startupTimeoutMs: 60_000,
      claim: { owner, claimedAt: 1, idleTimeoutMs: 0, maxLifetimeMs: 0 },
    },
    { uid: v7(), podUid: v7(), seals: NO_SEALS },
  );
