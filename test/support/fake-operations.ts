import { once } from 'node:events';
import { connect } from 'node:net';
import { EventFeed } from '../../src/actors/event-feed.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import { PortUnreachable, type ExecOutcome, type ExecRequest, type PortConnection } from '../../src/contracts/sandbox-driver.ts';
import { requireMatch } from '../../src/model/if-match.ts';
import type { EventRecord } from '../../src/model/event.ts';
import { type PoolRecord, NO_INSTANCES } from '../../src/model/pool.ts';
import {
 endpointNotFound, noIdleInstance, poolAlreadyExists, poolBeingDeleted, poolNotFound, poolNotOwned, poolToClaimNotFound,
  sandboxNotFound, sandboxNotRunning, templateNotFound,
} from '../../src/model/refusals.ts';
import { sameTenant, type Caller, type Role, type Tenant } from '../../src/model/tenant.ts';
import { ApiKeyMirror, mintApiKey } from '../../src/operations/api-keys.ts';
import { authentication } from '../../src/operations/authenticate.ts';
import { createApiKey, createApiKeyForTenant } from '../../src/operations/create-api-key.ts';
import { deleteApiKey, deleteApiKeyByName, listAllApiKeys, listApiKeys } from '../../src/operations/list-api-keys.ts';
import type { Operations, Readiness, ShardReport, SandboxFilter } from '../../src/operations/operations.ts';
import type { Page, PageRequest, PoolView, SandboxView } from '../../src/operations/views.ts';
import { aCoordination } from './a-coordination.ts';
import { MemoryApiKeys } from './memory-api-keys.ts';
import { MemoryLogs } from './memory-logs.ts';
import { MemoryHistory } from './memory-records.ts';
import { quietLog } from './quiet-log.ts';

const DAY_MS = 86_400_000;

export class FakeClock implements Clock {
  time = Date.parse('2026-03-01T12:00:00.000Z');
  now = (): number => this.time;
  at = (): (() => void) => () => {};
}

/** Operations in memory, without instances: pools have as many idle ones as replicas, and keys are the real thing. */
export class FakeOperations implements Operations {
  readonly clock = new FakeClock();
  /** Of requests with an Idempotency-Key. */
  readonly requests = aCoordination(this.clock);
  readonly keyRecords = new MemoryApiKeys();
  readonly pools = new Map<string, PoolRecord>();
  readonly sandboxes = new Map<string, SandboxView>();
  readiness_: Readiness = { ready: true, problems: [], warnings: [], isolation: 'cgroup-v1' };
  /** Thrown by whichever of sandboxes or pools is asked for next, until cleared. */
  failWith: Error | undefined;
  lastExec: ExecRequest | undefined;
  readonly logged = new MemoryLogs();
  followers = 0;
  readonly happened: EventRecord[] = [];
  readonly feed = new EventFeed({ clock: this.clock, log: quietLog, history: new MemoryHistory(), coordination: aCoordination(this.clock) });
  lastFilter: SandboxFilter | undefined;
  runExec: (request: ExecRequest, signal: AbortSignal) => Promise<ExecOutcome> = async () => outcome({});
  readonly #pepper = Buffer.alloc(32, 7);
  readonly #mirror = new ApiKeyMirror({ apiKeys: this.keyRecords, clock: { now: () => this.clock.now(), at: (_moment, due) => { setImmediate(due); return () => undefined; } } });
  readonly #keyDeps = {
    apiKeys: this.#mirror, pepper: this.#pepper, clock: this.clock,
    namespaceOf: (team: string) => `team-${team}`, defaultLifetimeMs: 90 * DAY_MS, maxLifetimeMs: 365 * DAY_MS, coordination: { expectUse: () => undefined },
  };
  #serial = 0;

  /** A key of the team's user, valid for a day. */
  async key(team: string, user: string, role: Role = 'user', lifetimeMs = DAY_MS): Promise<string> {
    const now = this.clock.now();
    const { record, apiKey } = mintApiKey({
      tenant: { namespace: `team-${team}`, team, user }, role, shortName: `k${this.#next()}`, description: '', issuedAt: now, expiresAt: now + lifetimeMs,
    }, this.#pepper);
    await this.#mirror.create(record);
    return apiKey;
  }

  readonly #authentication = authentication(this.#keyDeps);
  readonly authenticate = this.#authentication.authenticate;
  readonly authenticateAfresh = this.#authentication.authenticateAfresh;
  readonly createApiKey = createApiKey(this.#keyDeps);
  readonly createApiKeyForTenant = createApiKeyForTenant(this.#keyDeps);
  readonly listApiKeys = listApiKeys(this.#keyDeps);
  readonly listAllApiKeys = listAllApiKeys(this.#keyDeps);
  readonly deleteApiKey = deleteApiKey(this.#keyDeps);
  readonly deleteApiKeyByName = deleteApiKeyByName(this.#keyDeps);

  readonly claimSandbox: Operations['claimSandbox'] = async (caller, { poolName, idleTimeoutMs = 1_800_000 }) => {
    this.#fail();
    const pool = this.pools.get(`${caller.namespace}/${poolName}`);
    if (!pool && [...this.pools.values()].some(({ name }) => name === poolName)) throw poolNotOwned();
    if (!pool) throw poolToClaimNotFound(this.#poolsOf(caller).map((view) => ({ name: view.record.name, namespace: view.record.owner.namespace, idle: view.counts.idle, running: view.counts.running, starting: 0 })));
    if (!sameTenant(pool.owner, caller)) throw poolNotOwned();
    if (pool.deleting !== false) throw poolBeingDeleted();
    const { counts } = this.#viewOf(pool);
    if (counts.idle === 0) throw noIdleInstance(counts);
    const now = this.clock.now();
    const view: SandboxView = {
      id: uuidV7(this.#next()), revision: '1', poolName, owner: tenantOf(caller), status: 'Running', claimedAt: now, startedAt: now - 5_000,
      terminatedAt: undefined, recycledAt: undefined, durationSeconds: 0, cpu: '500m', memory: '256Mi', containerImages: { main: 'host' },
      endReason: undefined, idleTimeoutMs, idleExpiresAt: idleTimeoutMs === 0 ? undefined : now + idleTimeoutMs,
    };
    this.sandboxes.set(view.id, view);
    return view;
  };

  readonly claimedUnder: Operations['claimedUnder'] = async () => undefined;
  readonly unsettledClaim: Operations['unsettledClaim'] = () => undefined;

  readonly getSandbox: Operations['getSandbox'] = async (caller, sandboxId) => ({
    ...this.#sandbox(caller, sandboxId),
    endpoints: Object.fromEntries([...this.endpoints].map(([name, endpoint]) => [name, { ...endpoint, direct: false }])),
  });

  readonly listSandboxes: Operations['listSandboxes'] = async (caller, filter, page) => {
    this.#fail();
    this.lastFilter = filter;
    const mine = [...this.sandboxes.values()].reverse().filter((view) => (filter.all === true || sameTenant(view.owner, caller))
      && (filter.poolName ?? view.poolName) === view.poolName && (filter.phase ?? view.status) === view.status);
    return pageOf(mine, page);
  };

  readonly deleteSandbox: Operations['deleteSandbox'] = async (caller, sandboxId) => {
    const now = this.clock.now();
    const view: SandboxView = {
      ...this.#sandbox(caller, sandboxId), status: 'Completed', terminatedAt: now, recycledAt: now, durationSeconds: 12, endReason: 'deleted',
    };
    this.sandboxes.set(sandboxId, view);
    return { ...view, status: 'Stopping' };
  };

  readonly setIdleTimeout: Operations['setIdleTimeout'] = async (caller, sandboxId, { idleTimeoutMs, ifMatch }) => {
    const before = this.#sandbox(caller, sandboxId);
    requireMatch(ifMatch, before.revision);
    const view = { ...before, revision: `${Number(before.revision) + 1}`, idleTimeoutMs, idleExpiresAt: idleTimeoutMs === 0 ? undefined : this.clock.now() + idleTimeoutMs };
    this.sandboxes.set(sandboxId, view);
    return view;
  };

  readonly execInSandbox: Operations['execInSandbox'] = async (caller, sandboxId, request, signal) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    this.lastExec = request;
    return this.runExec(request, signal);
  };

  readonly sandboxLogs: Operations['sandboxLogs'] = async (caller, sandboxId, { tailLines, sinceMs, container = 'main' }) => {
    this.#sandbox(caller, sandboxId);
    const since = sinceMs === undefined ? {} : { since: this.clock.now() - sinceMs };
    return { sandboxId, container, ...this.logged.tail(sandboxId, { tailLines, limitBytes: 1 << 20, ...since }) };
  };

  readonly followSandboxLogs: Operations['followSandboxLogs'] = async (caller, sandboxId, request) => {
    const { lines } = await this.sandboxLogs(caller, sandboxId, request);
    const from = request.after ?? String(Number(lines.at(0)?.next ?? 1) - 1);
    this.followers += 1;
    return {
      batches: (signal) => this.logged.follow(sandboxId, from, { signal, ended: () => this.sandboxes.get(sandboxId)?.status === 'Completed' }),
      close: () => { this.followers -= 1; },
    };
  };

  readonly sandboxEvents: Operations['sandboxEvents'] = async (caller, sandboxId) => {
    this.#fail();
    const view = this.sandboxes.get(sandboxId); // those of a finished one are kept
    if (!view || !sameTenant(view.owner, caller)) throw sandboxNotFound();
    return this.happened.filter(({ sandboxId: of }) => of === sandboxId);
  };

  readonly followEvents: Operations['followEvents'] = (caller, { all, after }) => {
    this.followers += 1;
    return { batches: (signal) => this.feed.follow(all ? undefined : caller, after, signal), close: () => { this.followers -= 1; } };
  };

  /** Tells followers, and the sandbox's own list. */
  happens(event: EventRecord): void {
    this.happened.push(event);
    this.feed.note(event, { key: undefined, shard: 0, ours: true, kept: false });
  }

  readonly createExecToken: Operations['createExecToken'] = async (caller, sandboxId) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    return `token-${this.#next()}`;
  };

  readonly openTerminal: Operations['openTerminal'] = async () => { throw sandboxNotFound(); };

  /** Why each endpoint is not ready; others are. */
  readonly unready = new Map<string, string>();

  readonly isReady: Operations['isReady'] = async (caller, sandboxId) => {
    const { id } = this.#sandbox(caller, sandboxId);
    const endpoints = [...this.endpoints.keys()].map((name) => [name, { ready: !this.unready.has(name), message: this.unready.get(name) ?? 'its probe passes' }] as const);
    return { sandboxId: id, ready: this.unready.size === 0, endpoints: Object.fromEntries(endpoints) };
  };

  /** What endpoints lead to, by name; every sandbox has them all. */
  readonly endpoints = new Map<string, { readonly port: number; readonly scheme: 'http' | 'https' }>();
  /** How often traffic marked activity, and how many endpoints are open. */
  touched = 0;
  opened = 0;

  dial = async (port: number, signal: AbortSignal): Promise<PortConnection> => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect', { signal }).catch((error: unknown) => { throw new PortUnreachable(String(error)); });
    return socket;
  };

  readonly openEndpoint: Operations['openEndpoint'] = (caller, sandboxId, name) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    const endpoint = this.endpoints.get(name);
    if (!endpoint) throw endpointNotFound([...this.endpoints.keys()]);
    this.opened += 1;
    let open = true;
    return {
      sandboxId, ...endpoint, touch: () => { this.touched += 1; },
      dial: (signal) => this.dial(endpoint.port, signal),
      close: () => {
        if (open) this.opened -= 1;
        open = false;
      },
    };
  };

  readonly createdPoolUnder: Operations['createdPoolUnder'] = async () => undefined;

  readonly createPool: Operations['createPool'] = async (caller, request) => {
    this.#fail();
    if (request.templateName !== 'default') throw templateNotFound([{ name: 'default', description: 'a shell' }]);
    const key = `${caller.namespace}/${request.name}`;
    if (this.pools.has(key)) throw poolAlreadyExists();
    const record = poolRecord({ ...request, templateName: 'default', owner: tenantOf(caller), uid: `pool-${this.#next()}`, createdAt: this.clock.now() });
    this.pools.set(key, record);
    return this.#viewOf(record);
  };

  readonly getPool: Operations['getPool'] = async (caller, name) => this.#viewOf(this.#pool(caller, name));

  readonly listPools: Operations['listPools'] = async (caller, { all }, page) => {
    this.#fail();
    return pageOf(all ? [...this.pools.values()].reverse().map((record) => this.#viewOf(record)) : this.#poolsOf(caller), page);
  };

  readonly updatePool: Operations['updatePool'] = async (caller, name, { ifMatch, ...change }) => {
    const before = this.#pool(caller, name);
    requireMatch(ifMatch, before.revision);
    const record = { ...before, ...change, revision: `${Number(before.revision) + 1}` };
    this.pools.set(`${caller.namespace}/${name}`, record);
    return this.#viewOf(record);
  };

  readonly deletePool: Operations['deletePool'] = async (caller, name, { force }) => {
    const record: PoolRecord = { ...this.#pool(caller, name), deleting: force ? 'force' : 'keep-running' };
    this.pools.set(`${caller.namespace}/${name}`, record);
    return this.#viewOf(record);
  };

  readonly readiness = (): Readiness => this.readiness_;
  readonly shards = (): ShardReport => ({ replica: 'one', replicas: ['one', 'two'], shards: [{ shard: 0, leading: true, replica: 'one' }, { shard: 1, leading: false, replica: 'two' }, { shard: 2, leading: false }] });

  #fail(): void {
    if (this.failWith) throw this.failWith;
  }

  #next(): number {
    this.#serial += 1;
    return this.#serial;
  }

  #sandbox(caller: Caller, sandboxId: string): SandboxView {
    this.#fail();
    const view = this.sandboxes.get(sandboxId);
    if (!view || view.status === 'Completed' || !sameTenant(view.owner, caller)) throw sandboxNotFound();
    return view;
  }

  #pool(caller: Caller, name: string): PoolRecord {
    this.#fail();
    const record = this.pools.get(`${caller.namespace}/${name}`);
    if (!record || !sameTenant(record.owner, caller)) throw poolNotFound();
    return record;
  }

  #poolsOf(caller: Caller): PoolView[] {
    return [...this.pools.values()].filter(({ owner }) => sameTenant(owner, caller)).reverse().map((record) => this.#viewOf(record));
  }

  #viewOf(record: PoolRecord): PoolView {
    const running = [...this.sandboxes.values()].filter(({ poolName, owner, status }) =>
      status === 'Running' && poolName === record.name && owner.namespace === record.owner.namespace).length;
    return { record, phase: record.deleting === false ? 'Ready' : 'Deleting', counts: { ...NO_INSTANCES, running, idle: Math.max(0, record.replicas - running) } };
  }
}

export const outcome = (given: Partial<ExecOutcome>): ExecOutcome => ({
  stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0, timedOut: false, truncated: false, durationMs: 3, ...given,
});

/** The nth id: version 7, in order. */
export const uuidV7 = (n: number): string => `0190d4a5-7b1e-7c3a-9f00-${n.toString(16).padStart(12, '0')}`;

const poolRecord = (given: Pick<PoolRecord, 'name' | 'owner' | 'uid' | 'createdAt' | 'replicas' | 'templateName' | 'labels' | 'annotations'>): PoolRecord => ({
  ...given, revision: '1', templateVersion: '1', updateRevision: 'abc', deleting: false, breaker: { failures: 0, pausedUntil: 0, reason: '' },
  definition: {
    containers: [], network: 'none', startupTimeoutMs: 10_000, idleTimeoutMs: 1_800_000, maxLifetimeMs: 0, cpu: '500m', memory: '256Mi',
  },
});

const tenantOf = ({ namespace, team, user }: Caller): Tenant => ({ namespace, team, user });

const pageOf = <T>(all: readonly T[], { limit, offset }: PageRequest): Page<T> =>
  ({ items: all.slice(offset, offset + limit), total: all.length, limit, offset });
