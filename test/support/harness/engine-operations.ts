import { setImmediate as nextTurn } from 'node:timers/promises';
import { grantPools } from '../../../src/actors/pool/commands/grant-pools.ts';
import { PoolRenewal } from '../../../src/actors/pool/commands/pool-renewal.ts';
import { quotaDefaults, QuotaLimits } from '../../../src/actors/pool/commands/quota-limits.ts';
import { TemplateCatalog } from '../../../src/actors/pool/template-catalog.ts';
import { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';
import { EventFeed } from '../../../src/actors/runtime/event-feed.ts';
import { Supervisor } from '../../../src/actors/sandbox/supervisor.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';
import { viewOf, viewOfFinished } from '../../../src/actors/sandbox/sandbox-snapshot.ts';
import type { SandboxView } from '../../../src/actors/views.ts';
import type { Volume } from '../../../src/contracts/volumes.ts';
import type { Assembly } from '../../../src/daemon/assembly/assembly.ts';
import { openApprovals } from '../../../src/daemon/assembly/approvals.ts';
import { namespaceOf } from '../../../src/daemon/assembly/namespaces.ts';
import { type Config, loadConfig } from '../../../src/daemon/config/config.ts';
import { sourceTerms } from '../../../src/daemon/config/source-terms.ts';
import { openEnvs, type EnvParts } from '../../../src/daemon/envs.ts';
import { idAt } from '../../../src/daemon/ids.ts';
import { operationsOf } from '../../../src/daemon/operations.ts';
import { Participants } from '../../../src/daemon/participants.ts';
import { policyOf } from '../../../src/daemon/policy.ts';
import { managers } from '../../../src/fleet/replication/manager-access.ts';
import type { ClusterRecord } from '../../../src/model/fleet/cluster.ts';
import type { EventRecord } from '../../../src/model/event.ts';
import type { PoolRecord } from '../../../src/model/pools/pool.ts';
import type { InstanceType } from '../../../src/model/templates/instance-type.ts';
import { SandboxTemplateSchema } from '../../../src/model/templates/template.ts';
import type { Role } from '../../../src/model/tenant.ts';
import type { AuditTrail } from '../../../src/services/audit/audit-trail.ts';
import { RecentAuditRing } from '../../../src/services/audit/recent-audit-ring.ts';
import { ApiKeyMirror } from '../../../src/services/keys/api-keys.ts';
import { mintApiKey } from '../../../src/services/keys/mint-api-key.ts';
import type { Operations } from '../../../src/services/operations.ts';
import type { SandboxFiles } from '../../../src/contracts/files.ts';
import type { PullSecretOwner } from '../../../src/contracts/pull-secrets.ts';
import type { Records } from '../../../src/contracts/record-store.ts';
import type { RegistryCredentials } from '../../../src/model/pools/pool-source.ts';
import { aCoordination } from '../fakes/a-coordination.ts';
import { FakeSandboxDriver } from '../fakes/fake-sandbox-driver.ts';
import type { MemoryAnswerRows } from '../fakes/memory-answer-rows.ts';
import { MemoryApiKeys } from '../fakes/memory-api-keys.ts';
import { MemoryApprovals } from '../fakes/memory-approvals.ts';
import { MemoryDeadLetters } from '../fakes/memory-dead-letters.ts';
import { MemoryEnvs } from '../fakes/memory-envs.ts';
import { MemoryQuotas } from '../fakes/memory-quotas.ts';
import { MemoryHistory, MemoryPools } from '../fakes/memory-records.ts';
import { MemoryTemplates } from '../fakes/memory-templates.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { TestClock } from '../fakes/test-clock.ts';

const DAY_MS = 86_400_000;
const STARTED = Date.parse('2026-03-01T12:00:00.000Z');
const PEPPER = Buffer.alloc(32, 7);
/** Shorter waits end at once: nobody moves the clock for them. */
const SHORT_MS = 1_000;

class EngineClock extends TestClock {
  #firing: number | undefined;

  /** A wait that renews itself because it came too early ends only once the clock has moved. */
  override at(moment: number, due: () => void): () => void {
    if (moment >= this.now() + SHORT_MS || moment === this.#firing) return super.at(moment, due);
    const soon = setImmediate(() => {
      this.#firing = moment;
      due();
      this.#firing = undefined;
    });
    return () => clearImmediate(soon);
  }
}

/** As of a daemon that serves nothing else. */
const DEFAULTS = loadConfig({ env: {}, argvOptions: { dataDir: '/nonexistent' } }).config;
export const CONFIG: Config = {
  ...DEFAULTS,
  namespacePattern: 'team-{team}',
  console: { ...DEFAULTS.console, mode: 'off' },
  compatibleApi: { ...DEFAULTS.compatibleApi, listen: 'none' },
};

/** The template `default`: a shell, and `spec`. */
const aShell = (spec: object) =>
  SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 'default' },
    spec: {
      description: 'a shell',
      containers: [
        {
          name: 'main',
          image: 'host',
          command: ['sleep', 'infinity'],
          resources: { limits: { cpu: '500m', memory: '256Mi' } },
        },
      ],
      idleTimeout: '30m',
      network: 'none',
      ...spec,
    },
  });

export interface EngineTerms {
  readonly config?: Partial<Config>;
  /** For the template `default`; null: no template. */
  readonly spec?: object | null;
  /** Besides `host`. */
  readonly images?: readonly string[];
  /** Instead of files in memory. */
  readonly files?: SandboxFiles;
  /** Stored before. */
  readonly answers?: MemoryAnswerRows;
}

/** One in-memory implementation of each contract. */
export type EngineParts = ReturnType<typeof partsOf>;

const partsOf = ({ spec = {}, images = [], files, answers }: EngineTerms) => {
  const clock = new EngineClock(STARTED);
  const driver = new FakeSandboxDriver({ now: () => clock.now(), images });
  if (files) driver.files = files;
  const templates = new MemoryTemplates();
  if (spec)
    templates.records.set('default', {
      name: 'default',
      version: '1',
      revision: '0',
      createdAt: STARTED,
      document: aShell(spec),
    });
  const volumes = new Map<string, readonly Volume[]>();
  const types: InstanceType[] = [];
  const passwords = new Map<string, readonly RegistryCredentials[]>();
  return {
    clock,
    driver,
    records: {
      templates,
      pools: new MemoryPools(),
      envs: new MemoryEnvs(),
      apiKeys: new MemoryApiKeys(),
      approvals: new MemoryApprovals(),
      quotas: new MemoryQuotas(),
    },
    history: new MemoryHistory(),
    coordination: aCoordination(clock, answers),
    recentAudit: new RecentAuditRing(),
    deadLetters: new MemoryDeadLetters(clock),
    /** Instance types, and volumes by namespace. */
    types,
    volumesOf: volumes,
    volumes: {
      provided: true,
      list: async (namespace: string) => volumes.get(namespace) ?? [],
    },
    /** By the uid of the pool or env. */
    passwords,
    pullSecrets: {
      keep: async ({ uid }: PullSecretOwner, given: readonly RegistryCredentials[]) => {
        passwords.set(uid, given);
      },
      forget: async ({ uid }: Pick<PullSecretOwner, 'uid'>) => {
        passwords.delete(uid);
      },
    },
    /** Empty until a test adds some. */
    managers: [] as string[],
    problems: [] as string[],
    warnings: [] as string[],
  };
};

const assemblyOf = ({ problems, warnings, records, ...parts }: EngineParts): Assembly => ({
  ...parts,
  records: { ...records, clusters: undefined as unknown as Records<ClusterRecord> }, // of no fleet
  problems: () => problems,
  warnings: () => warnings,
  templates: { read: async () => [] },
  pepper: PEPPER,
  ensureFirstKeys: async () => undefined,
  startsAtOnce: 1_000,
  makesDefaultPool: false,
  backup: () => Promise.reject(new Error('nothing is on a disk')),
  reflectors: () => [],
  onOutdated: () => undefined,
  grantBy: () => undefined,
  failed: new Promise(() => {}),
  start: async () => undefined,
  stop: async () => undefined,
});

type OperationNames = keyof Operations;

/** The real engine over contracts in memory and a driver without processes. */
export interface Engine
  extends EngineParts, Pick<Mutable<Operations>, Exclude<OperationNames, keyof EngineParts>> {
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
  /** By `namespace/name`, with every claimed sandbox. */
  readonly pools: ReadonlyMap<string, PoolRecord>;
  readonly sandboxes: ReadonlyMap<string, SandboxView>;
  /** Still open: followers of events and logs, and ways into endpoints. */
  readonly open: { followers: number; endpoints: number };
  /** Valid for longer than any that the engine makes. */
  readonly key: (team: string, user: string, role?: Role, lifetimeMs?: number) => Promise<string>;
  /** Required before all calls except those about keys. May be repeated. */
  readonly start: () => Promise<void>;
  /** Resolves once no work remains, or all of it hangs. */
  readonly settled: () => Promise<void>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export const anEngine = (terms: EngineTerms = {}): Engine => {
  const config = { ...CONFIG, ...terms.config };
  const given = partsOf(terms);
  const parts = assemblyOf(given);
  const { clock, driver, coordination, history, records } = parts;
  const log = { ...quietLog, level: 'info' as const };
  const shared = { log, metrics: silentMetrics, coordination, clock };
  const apiKeys = new ApiKeyMirror({
    apiKeys: records.apiKeys,
    clock,
    revocations: coordination,
  });
  const quotaLimits = new QuotaLimits({
    quotas: records.quotas,
    clock,
    defaults: quotaDefaults(config.quotas),
  });
  const templates = new TemplateCatalog({ templates: records.templates, clock });
  const events = new EventFeed({ clock, log, history, coordination });
  const participants = new Participants();
  const supervisor = new Supervisor({
    ...shared,
    driver,
    pools: records.pools,
    passwords: {
      pullSecrets: parts.pullSecrets,
      isEnv: async (uid) => envs.mirror.get(uid) !== undefined,
    },
    history,
    watchers: { log, metrics: silentMetrics, events },
    policy: policyOf(config, parts),
    newId: () => idAt(clock.now()),
    sharding: {
      replica: 'one',
      participant: participants,
    },
  });
  const types = {
    provided: true,
    get: (name: string) => given.types.find((type) => type.name === name),
    list: () => given.types,
  };
  const rendering = {
    templates,
    types,
    volumes: parts.volumes,
    driver,
    terms: sourceTerms(config),
  };
  const renewal = new PoolRenewal({ ...shared, supervisor, quotaLimits, ...rendering });
  const envs: EnvParts = openEnvs(new EnvMirror({ envs: records.envs, clock, log }), {
    parts,
    ...shared,
    supervisor,
    quotaLimits,
    ...rendering,
    fleet: { clusterId: config.clusterId },
    newUid: () => idAt(clock.now()),
    firstMembers: [],
    changed: () => undefined,
  });
  const approvals = openApprovals(config, {
    parts,
    ...shared,
    runtime: supervisor.runtime,
    severalDecide: () => true,
    events,
  });
  participants.join([
    { onShardAcquired: (shard) => renewal.lead(shard) },
    envs,
    approvals.participant,
    { caughtUp: () => records.templates.caughtUp() },
  ]);
  const access = { cutOffAt: undefined as number | undefined };
  const operations = operationsOf(config, log, {
    parts,
    tls: undefined,
    audit: { problem: undefined } as AuditTrail, // recentAudit is what is listed
    life: { replica: 'one', stopping: false },
    mirrors: {
      apiKeys,
      quotaLimits,
      templates,
      types,
      fleet: {
        callers: undefined,
        listShown: undefined,
        promotions: undefined,
        warning: () => undefined,
        globals: undefined,
        templateLinks: undefined,
        managers: managers({
          addresses: given.managers,
          access: {
            get cutOffAt() {
              return access.cutOffAt;
            },
            set: async (cutOff) => {
              access.cutOffAt = cutOff ? clock.now() : undefined;
            },
          },
          apiKeys,
          links: () => 0,
          isLinked: () => false,
        }),
      },
    },
    supervisor,
    events,
    envs,
    approvals,
    metrics: silentMetrics,
  });
  const start = async (): Promise<void> => {
    await Promise.all([apiKeys.start(), quotaLimits.start(), templates.start()]);
    templates.follow(({ record }) => {
      renewal.template(record.name);
    });
    parts.grantBy(grantPools({ supervisor, coordination, clock, quotaLimits }));
    await Promise.all([envs.mirror.start(), approvals.start()]);
    await supervisor.start();
    await envs.start();
    await records.pools.watch(({ kind, record }) => {
      if (kind === 'put') renewal.consider(record.uid);
    });
  };
  let started: Promise<void> | undefined;
  let serial = 0;
  const open = { followers: 0, endpoints: 0 };
  return {
    ...given,
    ...operations,
    ...counted(operations, open),
    supervisor,
    events,
    open,
    get pools() {
      return new Map(
        [...given.records.pools.records.values()].map((record) => [
          `${record.owner.namespace}/${record.name}`,
          record,
        ]),
      );
    },
    get sandboxes() {
      return claimedOf(supervisor, given);
    },
    key: async (team, user, role = 'user', lifetimeMs = 366 * DAY_MS) => {
      const now = clock.now();
      const { record, apiKey } = mintApiKey(
        {
          tenant: { namespace: namespaceOf(config.namespacePattern, team), team, user },
          role,
          shortName: `k${(serial += 1)}`,
          description: '',
          issuedAt: now,
          expiresAt: now + lifetimeMs,
        },
        PEPPER,
      );
      await apiKeys.create(record);
      return apiKey;
    },
    start: () => (started ??= start()),
    settled: async () => {
      for (let turn = 0; turn < MOST_TURNS; turn += 1) {
        const before = given.driver.calls.length;
        await given.driver.settled();
        for (let each = 0; each < STILL_TURNS; each += 1) await nextTurn();
        if (before === given.driver.calls.length && isStill(supervisor)) return;
      }
    },
  };
};

const MOST_TURNS = 100;
const STILL_TURNS = 3;

const isStill = ({ runtime: { outbox } }: Supervisor): boolean =>
  outbox.numbers('supervisor').underWay + outbox.numbers('members').underWay === 0;

/** Counts open results of operations. */
const counted = (
  { followEvents, followSandboxLogs, openEndpoint, openPort }: Operations,
  open: Engine['open'],
): Partial<Operations> => {
  const held = <T extends { close(): void }>(of: keyof Engine['open'], opened: T): T => {
    const { close } = opened;
    open[of] += 1;
    let isOpen = true;
    return Object.assign(opened, {
      close: () => {
        if (isOpen) open[of] -= 1;
        isOpen = false;
        close();
      },
    });
  };
  return {
    followEvents: (...call) => held('followers', followEvents(...call)),
    followSandboxLogs: async (...call) => held('followers', await followSandboxLogs(...call)),
    openEndpoint: async (...call) => held('endpoints', await openEndpoint(...call)),
    openPort: async (...call) => held('endpoints', await openPort(...call)),
  };
};

const claimedOf = (
  supervisor: Supervisor,
  { clock, history }: EngineParts,
): ReadonlyMap<string, SandboxView> =>
  new Map(
    [
      ...history.finished.map(viewOfFinished),
      ...supervisor.ids().flatMap((id) => {
        const snapshot = supervisor.sandbox(id);
        return snapshot?.context.record?.claim ? [viewOf(snapshot, clock.now())] : [];
      }),
    ].map((view) => [view.id, view]),
  );

/** Like a call to a store that never answers. */
export const hangs = (): Promise<never> => new Promise(() => {});

export const happens = ({ events }: Engine, event: EventRecord): void => {
  events.note(event, { key: undefined, shard: 0, ours: true, kept: true });
};

/** From now on. */
export const callsOf = <K extends OperationNames>(
  operations: Engine,
  name: K,
): Parameters<Operations[K]>[] => {
  const calls: Parameters<Operations[K]>[] = [];
  const made = operations[name] as (...call: Parameters<Operations[K]>) => unknown;
  Object.assign(operations, {
    [name]: (...call: Parameters<Operations[K]>) => {
      calls.push(call);
      return made(...call);
    },
  });
  return calls;
};

/** Returns a function that ends the fault. */
export const failing = (
  operations: Engine,
  error: Error,
  ...names: readonly OperationNames[]
): (() => void) => {
  const before = Object.fromEntries(names.map((name) => [name, operations[name]]));
  const fail = (): Promise<never> => Promise.reject(error);
  Object.assign(operations, Object.fromEntries(names.map((name) => [name, fail])));
  return () => {
    Object.assign(operations, before);
  };
};
