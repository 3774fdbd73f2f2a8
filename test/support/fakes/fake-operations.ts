import { hasPairs, type ClaimFile } from '../../../src/model/claim-terms.ts';
import { v7 } from 'uuid';
import type { ProcessDriver } from '../../../src/contracts/processes.ts';
import { firstConditions } from '../../../src/machines/pool/decisions.ts';
import { once } from 'node:events';
import { connect } from 'node:net';
import { EventFeed } from '../../../src/actors/runtime/event-feed.ts';
import type { Clock } from '../../../src/contracts/clock.ts';
import {
  DefinitionRefused,
  PortUnreachable,
  type ExecOutcome,
  type ExecRequest,
  type PortConnection,
} from '../../../src/contracts/sandbox-driver.ts';
import { requireMatch } from '../../../src/model/if-match.ts';
import type { InstanceType } from '../../../src/model/templates/instance-type.ts';
import type { Volume } from '../../../src/contracts/volumes.ts';
import type { EventRecord } from '../../../src/model/event.ts';
import { appliedSpec, namesWhatToRun } from '../../../src/model/pools/applied-spec.ts';
import {
  type PoolRecord,
  NO_INSTANCES,
  wordRevisionOfPool,
} from '../../../src/model/pools/pool.ts';
import { mergedSource, type RegistryCredentials } from '../../../src/model/pools/pool-source.ts';
import {
  endpointNotFound,
  invalidArgument,
  poolAlreadyExists,
  hasNetwork,
  poolBeingDeleted,
  poolNotFound,
  poolNotOwned,
  sandboxNotFound,
  sandboxNotRunning,
  templateNotFound,
} from '../../../src/model/refusals.ts';
import { noIdleInstance } from '../../../src/model/pools/exhausted-pool.ts';
import type { InstanceDefinition } from '../../../src/model/templates/template.ts';
import {
  accessField,
  sameTenant,
  type Caller,
  type Role,
  type Tenant,
} from '../../../src/model/tenant.ts';
import { fileOperations } from '../../../src/services/files/files.ts';
import { MemoryFiles } from './memory-files.ts';
import { RecentAuditRing } from '../../../src/services/audit/recent-audit-ring.ts';
import { ApiKeyMirror } from '../../../src/services/keys/api-keys.ts';
import { mintApiKey } from '../../../src/services/keys/mint-api-key.ts';
import { authentication } from '../../../src/services/keys/authenticate.ts';
import { catalogue } from '../../../src/services/templates/catalogue.ts';
import {
  createTemplate,
  deleteTemplate,
  updateTemplate,
} from '../../../src/services/templates/change-templates.ts';
import { processOperations } from '../../../src/services/processes/processes.ts';
import { createApiKey, createApiKeyForTenant } from '../../../src/services/keys/create-api-key.ts';
import {
  deleteApiKey,
  deleteApiKeyByName,
  deleteApiKeysOf,
  getApiKey,
  keyIdOf,
  listAllApiKeys,
  listApiKeys,
} from '../../../src/services/keys/list-api-keys.ts';
import { listAudit } from '../../../src/services/debug/list-audit.ts';
import { managers } from '../../../src/fleet/replication/manager-access.ts';
import { templateClusters } from '../../../src/fleet/replication/template-clusters.ts';
import { logLevels } from '../../../src/services/debug/log-levels.ts';
import { sandboxTokens } from '../../../src/services/keys/sandbox-tokens.ts';
import { signedLinks, type SignedLinksDeps } from '../../../src/services/keys/signed-links.ts';
import { promoteApiKey } from '../../../src/services/keys/promote-api-key.ts';
import { QuotaLimits } from '../../../src/actors/pool/commands/quota-limits.ts';
import { getQuotas, getQuotasOf, setQuotasOf } from '../../../src/actors/pool/commands/quotas.ts';
import type { Operations, Readiness } from '../../../src/services/operations.ts';
import type { ShardReport } from '../../../src/services/debug/debug-operations.ts';
import type {
  OpenEndpoint,
  SandboxFilter,
} from '../../../src/actors/sandbox/commands/sandbox-operations.ts';
import { TemplateCatalog } from '../../../src/actors/pool/template-catalog.ts';
import { getTemplate, listTemplates } from '../../../src/services/templates/templates.ts';
import type { Page, PageRequest, PoolView, SandboxView } from '../../../src/actors/views.ts';
import { aCoordination } from './a-coordination.ts';
import { aStoredPool } from '../builders/a-pool.ts';
import { FakeDebug } from './fake-debug.ts';
import { fakeEnvs } from './fake-envs.ts';
import { MemoryApprovals } from './memory-approvals.ts';
import { approvalParts } from '../../../src/services/approvals/approval-parts.ts';
import { MemoryApiKeys } from './memory-api-keys.ts';
import { MemoryTemplates } from './memory-templates.ts';
import { FakeProcesses } from './fake-processes.ts';
import { MemoryLogs } from './memory-logs.ts';
import { MemoryQuotas } from './memory-quotas.ts';
import { MemoryHistory } from './memory-records.ts';
import { quietLog } from './quiet-log.ts';
import type { Requests } from '../../../src/contracts/coordination/requests.ts';
import { requestOperations } from '../../../src/actors/request/request-operations.ts';

const DAY_MS = 86_400_000;

export class FakeClock implements Clock {
  time = Date.parse('2026-03-01T12:00:00.000Z');
  now = (): number => this.time;
  at = (): (() => void) => () => {};
}

/**
 * Operations in memory, without instances: pools have as many idle ones as replicas, and keys are
 * the real thing.
 */
export class FakeOperations extends FakeDebug implements Operations {
  readonly clock = new FakeClock();
  /** Of requests with an Idempotency-Key. */
  readonly requests = aCoordination(this.clock);
  /** Keeps what requests with an Idempotency-Key are answered. */
  kept: Requests = this.requests;
  readonly keyRecords = new MemoryApiKeys();
  readonly idempotentRequest: Operations['idempotentRequest'] = (...request) =>
    requestOperations({ ...this.kept, countWithin: this.requests.countWithin }).idempotentRequest(
      ...request,
    );
  readonly countRejectedKey: Operations['countRejectedKey'] = (group) =>
    requestOperations(this.requests).countRejectedKey(group);
  readonly pools = new Map<string, PoolRecord>();
  readonly sandboxes = new Map<string, SandboxView>();
  readiness_: Readiness = { ready: true, problems: [], warnings: [], isolation: 'cgroup-v1' };
  /** Thrown by whichever of sandboxes or pools is asked for next, until cleared. */
  failWith: Error | undefined;
  lastExec: ExecRequest | undefined;
  readonly logged = new MemoryLogs();
  followers = 0;
  readonly happened: EventRecord[] = [];
  readonly feed = new EventFeed({
    clock: this.clock,
    log: quietLog,
    history: new MemoryHistory(),
    coordination: aCoordination(this.clock),
  });
  lastFilter: SandboxFilter | undefined;
  runExec: (request: ExecRequest, signal: AbortSignal) => Promise<ExecOutcome> = async () =>
    outcome({});
  readonly #pepper = Buffer.alloc(32, 7);
  /** What waits for the next read waits a turn. */
  readonly #readClock: Clock = {
    now: () => this.clock.now(),
    at: (moment, due) => {
      if (moment < this.clock.now() + 1_000) setImmediate(due);
      return () => undefined;
    },
  };
  readonly #mirror = new ApiKeyMirror({
    apiKeys: this.keyRecords,
    clock: this.#readClock,
    revocations: this.requests,
  });
  readonly quotas = new MemoryQuotas();
  readonly #keyDeps = {
    quotaLimits: new QuotaLimits({
      quotas: this.quotas,
      clock: this.#readClock,
      defaults: { sandboxes: 1_000, pools: 50, replicas: 2_000 },
    }),
    apiKeys: this.#mirror,
    pepper: this.#pepper,
    clock: this.clock,
    namespaceOf: (team: string) => `team-${team}`,
    defaultLifetimeMs: 90 * DAY_MS,
    maxLifetimeMs: 365 * DAY_MS,
    creation: 'everyone' as 'everyone' | 'admins',
    isLinked: () => false,
    coordination: this.requests,
  };
  #serial = 0;

  /** A key of the team's user, valid for longer than any that it makes. */
  async key(
    team: string,
    user: string,
    role: Role = 'user',
    lifetimeMs = 366 * DAY_MS,
  ): Promise<string> {
    const now = this.clock.now();
    const { record, apiKey } = mintApiKey(
      {
        tenant: { namespace: `team-${team}`, team, user },
        role,
        shortName: `k${this.#next()}`,
        description: '',
        issuedAt: now,
        expiresAt: now + lifetimeMs,
      },
      this.#pepper,
    );
    await this.#mirror.create(record);
    return apiKey;
  }

  readonly #authentication = authentication(this.#keyDeps);
  /** From now on only admins make keys. */
  closeKeys(): void {
    this.#keyDeps.creation = 'admins';
  }
  readonly authenticate = this.#authentication.authenticate;
  readonly authenticateAfresh = this.#authentication.authenticateAfresh;
  readonly #tokens = sandboxTokens(this.#keyDeps);
  readonly sandboxTokens = this.#tokens.sandboxTokens;
  readonly bearerOf = this.#tokens.bearerOf;
  readonly signerOf = signedLinks({
    apiKeys: this.#mirror,
    clock: this.clock,
    tokensOf: this.#tokens.sandboxTokens,
    supervisor: {
      index: { list: () => ({ ids: [...this.sandboxes.keys()], total: this.sandboxes.size }) },
      sandbox: (id: string) => {
        const view = this.sandboxes.get(id);
        return view && { status: view.status, context: { record: { claim: view } } };
      },
    } as unknown as SignedLinksDeps['supervisor'],
  });
  readonly guestOf: Operations['guestOf'] = (id) => {
    const view = this.sandboxes.get(id);
    return view?.status === 'Running' ? { ...view.owner, role: 'user', keyId: 'guest' } : undefined;
  };
  readonly createApiKey = createApiKey(this.#keyDeps);
  readonly createApiKeyForTenant = createApiKeyForTenant(this.#keyDeps);
  readonly getApiKey = getApiKey(this.#keyDeps);
  readonly keyIdOf = keyIdOf(this.#keyDeps);
  readonly listApiKeys = listApiKeys(this.#keyDeps);
  readonly listAllApiKeys = listAllApiKeys(this.#keyDeps);
  readonly deleteApiKey = deleteApiKey(this.#keyDeps);
  readonly deleteApiKeyByName = deleteApiKeyByName(this.#keyDeps);
  readonly deleteApiKeysOf = deleteApiKeysOf(this.#keyDeps);
  readonly promoteApiKey = promoteApiKey({ ...this.#keyDeps, promotions: undefined });
  readonly followKey: Operations['followKey'] = (keyId, ended) =>
    this.#mirror.followEnd(keyId, ended);

  readonly approvalRecords = new MemoryApprovals();
  readonly #approvals = approvalParts({
    approvals: this.approvalRecords,
    clock: this.clock,
    log: quietLog,
    pepper: this.#pepper,
    rules: [],
    terms: { pendingMs: 900_000, grantMs: 600_000, sessionMs: 8 * 3_600_000 },
    severalDecide: () => true,
  });
  /** Until then no approval is found. */
  readonly startApprovals = () => this.#approvals.mirror.start();
  readonly listApprovals = this.#approvals.operations.listApprovals;
  readonly getApproval = this.#approvals.operations.getApproval;
  readonly approvalContent = this.#approvals.operations.approvalContent;
  readonly decideApproval = this.#approvals.operations.decideApproval;

  readonly getQuotas = getQuotas(this.#keyDeps);
  readonly getQuotasOf = getQuotasOf(this.#keyDeps);
  readonly setQuotasOf = setQuotasOf(this.#keyDeps);

  /** How long each claim would wait. */
  readonly waits: number[] = [];
  /** As a driver describes itself. */
  readonly described = { isolation: 'fake', pauses: true, warnings: [], problems: [] };
  /** The variables that each claim gave. */
  readonly claimedEnv: (Readonly<Record<string, string>> | undefined)[] = [];

  /** The files that each claim brought. */
  readonly claimedFiles: (readonly ClaimFile[] | undefined)[] = [];

  readonly claimSandbox: Operations['claimSandbox'] = async (
    caller,
    {
      poolName,
      idleTimeoutMs = 1_800_000,
      lifetimeMs,
      waitMs = 0,
      opening,
      env,
      metadata,
      files,
      ...more
    },
  ) => {
    this.waits.push(waitMs);
    this.claimedEnv.push(env);
    this.claimedFiles.push(files);
    await opening?.open();
    this.#fail();
    const pool = this.pools.get(`${caller.namespace}/${poolName}`);
    if (!pool && [...this.pools.values()].some(({ name }) => name === poolName))
      throw poolNotOwned();
    if (!pool)
      throw poolNotFound(
        poolName,
        this.#poolsOf(caller).map((view) => ({
          name: view.record.name,
          namespace: view.record.owner.namespace,
          idle: view.counts.idle,
          running: view.counts.running,
          starting: 0,
        })),
      );
    if (!sameTenant(pool.owner, caller)) throw poolNotOwned();
    if (pool.deleting !== false) throw poolBeingDeleted();
    if (more.withoutNetwork && pool.definition.network !== 'none')
      throw hasNetwork(more.withoutNetwork.field);
    const { counts } = this.#viewOf(pool);
    if (counts.idle === 0) throw noIdleInstance({ name: pool.name }, counts);
    const now = this.clock.now();
    const view: SandboxView = {
      id: uuidV7(this.#next()),
      revision: '1',
      poolName,
      owner: tenantOf(caller),
      status: 'Running',
      claimedAt: now,
      startedAt: now - 5_000,
      terminatedAt: undefined,
      recycledAt: undefined,
      durationSeconds: 0,
      cpu: '500m',
      memory: '256Mi',
      containerImages: { main: 'host' },
      endReason: undefined,
      idleTimeoutMs,
      idleExpiresAt: idleTimeoutMs === 0 ? undefined : now + idleTimeoutMs,
      endsAt: lifetimeMs === undefined ? undefined : now + lifetimeMs,
      metadata,
      autoPause: more.autoPause || undefined,
    };
    this.sandboxes.set(view.id, view);
    return view;
  };

  readonly pendingClaim: Operations['pendingClaim'] = () => undefined;
  claimedBefore: Operations['claimedBefore'] = async (_caller, opening) => {
    await opening.open();
    return undefined;
  };

  readonly getSandbox: Operations['getSandbox'] = async (caller, sandboxId) => ({
    ...this.#sandbox(caller, sandboxId),
    endpoints: Object.fromEntries(
      [...this.endpoints].map(([name, endpoint]) => [name, { ...endpoint, direct: false }]),
    ),
  });

  readonly listSandboxes: Operations['listSandboxes'] = async (caller, filter, page) => {
    this.#fail();
    this.lastFilter = filter;
    const mine = [...this.sandboxes.values()]
      .reverse()
      .filter(
        (view) =>
          (filter.all === true || sameTenant(view.owner, caller)) &&
          (filter.poolName ?? view.poolName) === view.poolName &&
          (filter.phase ?? view.status) === view.status &&
          hasPairs(view.metadata, filter.metadata ?? {}),
      );
    return pageOf(mine, page);
  };

  readonly deleteSandbox: Operations['deleteSandbox'] = async (caller, sandboxId) => {
    const now = this.clock.now();
    const view: SandboxView = {
      ...this.#sandbox(caller, sandboxId),
      status: 'Completed',
      terminatedAt: now,
      recycledAt: now,
      durationSeconds: 12,
      endReason: 'deleted',
    };
    this.sandboxes.set(sandboxId, view);
    return { ...view, status: 'Stopping' };
  };

  readonly setSandboxState: Operations['setSandboxState'] = async (caller, sandboxId, state) => {
    this.#fail();
    const { paused: _before, ...before } = this.#sandbox(caller, sandboxId);
    const view: SandboxView = { ...before, paused: state === 'paused' ? true : undefined };
    this.sandboxes.set(sandboxId, view);
    return view;
  };

  readonly setSandboxEnd: Operations['setSandboxEnd'] = async (
    caller,
    sandboxId,
    { lifetimeMs, extend },
  ) => {
    const before = this.#sandbox(caller, sandboxId);
    const endsAt = this.clock.now() + lifetimeMs;
    const view = {
      ...before,
      endsAt: extend ? Math.max(before.endsAt ?? Number.POSITIVE_INFINITY, endsAt) : endsAt,
    };
    this.sandboxes.set(sandboxId, view);
    return view;
  };

  readonly setIdleTimeout: Operations['setIdleTimeout'] = async (
    caller,
    sandboxId,
    { idleTimeoutMs, ifMatch },
  ) => {
    const before = this.#sandbox(caller, sandboxId);
    requireMatch(ifMatch, before.revision);
    const view = {
      ...before,
      revision: `${Number(before.revision) + 1}`,
      idleTimeoutMs,
      idleExpiresAt: idleTimeoutMs === 0 ? undefined : this.clock.now() + idleTimeoutMs,
    };
    this.sandboxes.set(sandboxId, view);
    return view;
  };

  readonly files = new MemoryFiles();
  readonly #files = fileOperations({
    files: this.files,
    requireRunning: async (caller, sandboxId) => {
      const view = this.#sandbox(caller, sandboxId);
      if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    },
    begin: () => () => {},
  });
  readonly openFile = this.#files.openFile;
  readonly writeFile = this.#files.writeFile;
  readonly unpackFiles = this.#files.unpackFiles;
  readonly removeFile = this.#files.removeFile;
  readonly statFile = this.#files.statFile;
  readonly listFiles = this.#files.listFiles;
  readonly moveFile = this.#files.moveFile;
  readonly makeFolder = this.#files.makeFolder;
  readonly watchFiles = this.#files.watchFiles;

  readonly execInSandbox: Operations['execInSandbox'] = async (
    caller,
    sandboxId,
    { request, signal },
  ) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    const { gathered, ...asked } = request;
    this.lastExec = asked;
    const ran = await this.runExec(request, signal);
    gathered?.(ran.stdout);
    gathered?.(ran.stderr);
    return ran;
  };

  processes: ProcessDriver = new FakeProcesses({ now: () => this.clock.now() });
  readonly #processes = processOperations({
    sandboxes: {
      require: async (caller, sandboxId) => {
        const { status } = this.#sandbox(caller, sandboxId);
        if (status !== 'Running') throw sandboxNotRunning(status);
        return { envOver: (own) => own };
      },
      active: () => undefined,
      busy: () => () => undefined,
    },
    driver: processesOf(() => this.processes),
    clock: this.clock,
    newId: v7,
  });
  readonly startProcess = this.#processes.startProcess;
  readonly runProcess = this.#processes.runProcess;
  readonly listProcesses = this.#processes.listProcesses;
  readonly getProcess = this.#processes.getProcess;
  readonly followProcess = this.#processes.followProcess;
  readonly giveInput = this.#processes.giveInput;
  readonly writeToProcess = this.#processes.writeToProcess;
  readonly signalProcess = this.#processes.signalProcess;
  readonly resizeProcess = this.#processes.resizeProcess;
  readonly deleteProcess = this.#processes.deleteProcess;

  readonly sandboxLogs: Operations['sandboxLogs'] = async (
    caller,
    sandboxId,
    { tailLines, sinceMs, container = 'main' },
  ) => {
    this.#sandbox(caller, sandboxId);
    const since = sinceMs === undefined ? {} : { since: this.clock.now() - sinceMs };
    return {
      sandboxId,
      container,
      ...this.logged.tail(sandboxId, { tailLines, limitBytes: 1 << 20, ...since }),
    };
  };

  readonly followSandboxLogs: Operations['followSandboxLogs'] = async (
    caller,
    sandboxId,
    request,
  ) => {
    const { lines } = await this.sandboxLogs(caller, sandboxId, request);
    const from = request.after ?? String(Number(lines.at(0)?.next ?? 1) - 1);
    this.followers += 1;
    return {
      heldBytes: lines.reduce((sum, { text }) => sum + text.length, 0),
      batches: (signal) =>
        this.logged.follow(sandboxId, from, {
          signal,
          ended: () => this.sandboxes.get(sandboxId)?.status === 'Completed',
        }),
      close: () => {
        this.followers -= 1;
      },
    };
  };

  readonly sandboxEvents: Operations['sandboxEvents'] = async (caller, sandboxId) => {
    this.#fail();
    const view = this.sandboxes.get(sandboxId); // those of a finished one are kept
    if (!view || !sameTenant(view.owner, caller)) throw sandboxNotFound();
    return this.happened.filter(({ sandboxId: of }) => of === sandboxId);
  };

  readonly poolEvents: Operations['poolEvents'] = async (caller, name) => {
    this.#fail();
    const isOfPool = (event: EventRecord): boolean =>
      event.sandboxId === undefined && event.poolName === name && sameTenant(event.owner, caller);
    const pool = this.pools.get(`${caller.namespace}/${name}`);
    if (!this.happened.some(isOfPool) && !(pool && sameTenant(pool.owner, caller)))
      throw poolNotFound(name);
    return this.happened.filter(isOfPool);
  };

  readonly followEvents: Operations['followEvents'] = (caller, { all, after }) => {
    this.followers += 1;
    return {
      batches: (signal) => this.feed.follow(all ? undefined : caller, after, signal),
      close: () => {
        this.followers -= 1;
      },
    };
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

  readonly openTerminal: Operations['openTerminal'] = async () => {
    throw sandboxNotFound();
  };

  /** Why each endpoint is not ready; others are. */
  readonly unready = new Map<string, string>();

  readonly isReady: Operations['isReady'] = async (caller, sandboxId) => {
    const { id } = this.#sandbox(caller, sandboxId);
    const endpoints = [...this.endpoints.keys()].map(
      (name) =>
        [
          name,
          { ready: !this.unready.has(name), message: this.unready.get(name) ?? 'its probe passes' },
        ] as const,
    );
    return {
      sandboxId: id,
      ready: this.unready.size === 0,
      endpoints: Object.fromEntries(endpoints),
    };
  };

  /** What endpoints lead to, by name; every sandbox has them all. */
  readonly endpoints = new Map<
    string,
    { readonly port: number; readonly scheme: 'http' | 'https' }
  >();
  /** How often traffic marked activity, and how many endpoints are open. */
  touched = 0;
  opened = 0;

  dial = async (port: number, signal: AbortSignal): Promise<PortConnection> => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect', { signal }).catch((error: unknown) => {
      throw new PortUnreachable(String(error));
    });
    return socket;
  };

  readonly openEndpoint: Operations['openEndpoint'] = (caller, sandboxId, name) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    const endpoint = this.endpoints.get(name);
    if (!endpoint) throw endpointNotFound([...this.endpoints.keys()]);
    return this.#opened(sandboxId, endpoint);
  };

  readonly openPort: Operations['openPort'] = (caller, sandboxId, port) => {
    const view = this.#sandbox(caller, sandboxId);
    if (view.status !== 'Running') throw sandboxNotRunning(view.status);
    return this.#opened(sandboxId, { port, scheme: 'http' });
  };

  #opened(sandboxId: string, endpoint: Pick<OpenEndpoint, 'port' | 'scheme'>): OpenEndpoint {
    this.opened += 1;
    let open = true;
    return {
      sandboxId,
      ...endpoint,
      env: () => undefined,
      touch: () => {
        this.touched += 1;
      },
      dial: (signal) => this.dial(endpoint.port, signal),
      close: () => {
        if (open) this.opened -= 1;
        open = false;
      },
    };
  }

  readonly findPoolByKey: Operations['findPoolByKey'] = async () => undefined;

  readonly createPool: Operations['createPool'] = async (caller, request) => {
    this.#fail();
    const { source, name, labels, annotations, replicas = 1 } = request;
    if (!namesWhatToRun(source)) throw invalidArgument('templateName', 'is required');
    if (source.templateName !== undefined && source.templateName !== 'default')
      throw templateNotFound([{ name: 'default', description: 'a shell' }]);
    this.registries.push(...(request.registries ?? []));
    const key = `${caller.namespace}/${request.name}`;
    if (this.pools.has(key)) throw poolAlreadyExists();
    const record = poolRecord({
      name,
      labels,
      annotations,
      replicas,
      source,
      owner: tenantOf(caller),
      uid: `pool-${this.#next()}`,
      createdAt: this.clock.now(),
    });
    this.pools.set(key, record);
    return this.#viewOf(record);
  };

  readonly getPool: Operations['getPool'] = async (caller, name) =>
    this.#viewOf(this.#pool(caller, name));

  readonly listPools: Operations['listPools'] = async (caller, { all, phase }, page) => {
    this.#fail();
    const pools = all
      ? [...this.pools.values()].reverse().map((record) => this.#viewOf(record))
      : this.#poolsOf(caller);
    return pageOf(
      pools.filter((pool) => phase === undefined || pool.phase === phase),
      page,
    );
  };

  readonly updatePool: Operations['updatePool'] = async (
    caller,
    name,
    { ifMatch, source, registries, updateStrategy, access, ...change },
  ) => {
    const before = this.#pool(caller, name);
    requireMatch(ifMatch, wordRevisionOfPool(before));
    this.registries.push(...(registries ?? []));
    const record = {
      ...before,
      ...change,
      ...accessField(access),
      revision: `${Number(before.revision) + 1}`,
      source: mergedSource(before.source, source ?? {}),
      updateStrategy: { ...before.updateStrategy, ...updateStrategy },
    };
    this.pools.set(`${caller.namespace}/${name}`, record);
    return this.#viewOf(record);
  };

  /** Names of pools whose starts fail. */
  readonly degraded = new Set<string>();

  /** What was given of registries, with their passwords. */
  readonly registries: RegistryCredentials[] = [];

  readonly syncPool: Operations['syncPool'] = async (caller, name) =>
    this.#viewOf(this.#pool(caller, name));

  readonly previewPoolSync: Operations['previewPoolSync'] = async (caller, name) => {
    const record = this.#pool(caller, name);
    return {
      record,
      version: '7',
      spec: appliedSpec({ containers: [{ name: 'main', image: 'host' }] }, record.source),
    };
  };

  readonly deletePool: Operations['deletePool'] = async (caller, name, { force }) => {
    const record: PoolRecord = {
      ...this.#pool(caller, name),
      deleting: force ? 'force' : 'keep-running',
    };
    this.pools.set(`${caller.namespace}/${name}`, record);
    return this.#viewOf(record);
  };

  readonly #poolOf = (caller: Caller, name: string, replicas: number): PoolRecord =>
    this.pools.get(`${caller.namespace}/${name}`) ??
    poolRecord({
      name,
      replicas,
      owner: tenantOf(caller),
      uid: `pool-${name}`,
      createdAt: this.clock.now(),
      source: { templateName: 'default' },
      labels: {},
      annotations: {},
    });
  readonly #fakeEnvs = fakeEnvs({
    now: () => this.clock.now(),
    registries: this.registries,
    poolOf: (caller, name, replicas) => this.#viewOf(this.#poolOf(caller, name, replicas)),
    makePool: (caller, name, replicas) => {
      const record = this.#poolOf(caller, name, replicas);
      this.pools.set(`${caller.namespace}/${name}`, record);
      return this.#viewOf(record);
    },
  });
  /** By `namespace/name`. */
  readonly envs = this.#fakeEnvs.records;
  /** How members stand, by name, where a test has them stand in some way. */
  readonly observed = this.#fakeEnvs.observed;
  readonly #envs = this.#fakeEnvs.operations;
  /** For a test to say where claims by an env's name go. */
  claimPlaces: Operations['claimPlaces'] = () => [];
  readonly createEnv = this.#envs.createEnv;
  readonly findEnvByKey = this.#envs.findEnvByKey;
  readonly getEnv = this.#envs.getEnv;
  readonly listEnvs = this.#envs.listEnvs;
  readonly replaceEnv = this.#envs.replaceEnv;
  readonly patchEnv = this.#envs.patchEnv;
  readonly deleteEnv = this.#envs.deleteEnv;
  readonly syncEnv = this.#envs.syncEnv;
  readonly addMember = this.#envs.addMember;
  readonly findMemberByKey = this.#envs.findMemberByKey;
  readonly listMembers = this.#envs.listMembers;
  readonly updateMember = this.#envs.updateMember;
  readonly deleteMember = this.#envs.deleteMember;
  readonly listGroups = this.#envs.listGroups;
  readonly getGroup = this.#envs.getGroup;
  readonly groupDecisions = this.#envs.groupDecisions;
  readonly updateGroup = this.#envs.updateGroup;
  readonly deleteGroup = this.#envs.deleteGroup;

  /**
   * The real operations, over memory; the driver takes every template whose image is not `wrong`.
   */
  readonly templates = new MemoryTemplates();
  readonly #catalog = new TemplateCatalog({ templates: this.templates, clock: this.clock });
  readonly #templateDeps = {
    templates: this.templates,
    pools: { list: async () => [...this.pools.values()] },
    clock: this.clock,
    driver: {
      check: ({ containers }: InstanceDefinition) => {
        if (containers[0]?.image === 'wrong')
          throw new DefinitionRefused('spec.containers[0].image: there is no image "wrong"');
      },
      expect: () => undefined,
    },
  };
  readonly getTemplate = getTemplate(this.#templateDeps);
  readonly listTemplates: Operations['listTemplates'] = (page) => {
    for (const record of this.templates.records.values())
      this.#catalog.learn({ kind: 'put', record });
    return listTemplates({ catalog: this.#catalog })(page);
  };
  readonly createTemplate = createTemplate(this.#templateDeps);
  readonly updateTemplate = updateTemplate(this.#templateDeps);
  readonly deleteTemplate = deleteTemplate(this.#templateDeps);
  readonly templateClusters = templateClusters(this.#templateDeps);

  /** What is offered: to each namespace its volumes. */
  readonly types: InstanceType[] = [];
  readonly volumes = new Map<string, readonly Volume[]>();
  readonly #catalogue = catalogue({
    hasConsole: false,
    holdsRequests: false,
    servesCompatibleApi: false,
    instanceTypes: { provided: true, get: () => undefined, list: () => this.types },
    clock: this.clock,
    clusterId: 'local',
    driver: { processes: this.processes, files: this.files, describe: () => this.described },
    volumes: { provided: true, list: async (namespace) => this.volumes.get(namespace) ?? [] },
  });
  readonly listInstanceTypes = this.#catalogue.listInstanceTypes;
  readonly listVolumes = this.#catalogue.listVolumes;
  readonly featureGates = this.#catalogue.featureGates;
  readonly listClusters = this.#catalogue.listClusters;

  readonly sandboxStatistics: Operations['sandboxStatistics'] = async () => {
    const statuses = [...this.sandboxes.values()].map(({ status }) => status);
    return {
      total: statuses.length,
      byStatus: new Map(
        statuses.map((status) => [status, statuses.filter((other) => other === status).length]),
      ),
      byNamespace: new Map([['team-blue', statuses.length]]),
    };
  };

  readonly readiness = (): Readiness => this.readiness_;
  readonly audit = new RecentAuditRing();
  readonly listAudit = listAudit({ recent: this.audit });
  readonly #logLevels = logLevels({
    log: { ...quietLog, level: 'info' },
    clock: this.clock,
    replica: 'one',
  });
  readonly getLogLevel = this.#logLevels.getLogLevel;
  readonly setLogLevel = this.#logLevels.setLogLevel;

  /** A worker of no manager, until a test gives it one. */
  readonly managerAddresses: string[] = [];
  readonly #access: { cutOffAt: number | undefined; set: (cutOff: boolean) => Promise<void> } = {
    cutOffAt: undefined,
    set: async (cutOff) => {
      this.#access.cutOffAt = cutOff ? this.clock.now() : undefined;
    },
  };
  readonly #managers = managers({
    ...{ addresses: this.managerAddresses, access: this.#access, apiKeys: this.#mirror },
    ...{ links: () => 0, isLinked: () => false },
  });
  readonly getManagers = this.#managers.getManagers;
  readonly setManagers = this.#managers.setManagers;

  readonly shards = (): ShardReport => ({
    replica: 'one',
    replicas: ['one', 'two'],
    shards: [
      { shard: 0, leading: true, replica: 'one' },
      { shard: 1, leading: false, replica: 'two' },
      { shard: 2, leading: false },
    ],
  });

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
    if (!view || view.status === 'Completed' || !sameTenant(view.owner, caller))
      throw sandboxNotFound();
    return view;
  }

  #pool(caller: Caller, name: string): PoolRecord {
    this.#fail();
    const record = this.pools.get(`${caller.namespace}/${name}`);
    if (!record || !(sameTenant(record.owner, caller) || caller.role === 'admin'))
      throw poolNotFound(name);
    return record;
  }

  #poolsOf(caller: Caller): PoolView[] {
    return [...this.pools.values()]
      .filter(({ owner }) => sameTenant(owner, caller))
      .reverse()
      .map((record) => this.#viewOf(record));
  }

  #viewOf(record: PoolRecord): PoolView {
    const running = [...this.sandboxes.values()].filter(
      ({ poolName, owner, status }) =>
        status === 'Running' &&
        poolName === record.name &&
        owner.namespace === record.owner.namespace,
    ).length;
    const counts = { ...NO_INSTANCES, running, idle: Math.max(0, record.replicas - running) };
    const isDegraded = this.degraded.has(record.name);
    const phase = isDegraded ? 'Degraded' : 'Ready';
    return {
      record,
      phase: record.deleting === false ? phase : 'Deleting',
      counts,
      updated: counts,
      conditions: firstConditions(record).map((condition) =>
        isDegraded && condition.type === 'Degraded'
          ? { ...condition, status: 'True', reason: 'StartsFail', message: 'no such image' }
          : condition,
      ),
    };
  }
}

export const outcome = (given: Partial<ExecOutcome>): ExecOutcome => ({
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  exitCode: 0,
  timedOut: false,
  truncated: false,
  durationMs: 3,
  ...given,
});

/** The nth id: version 7, in order. */
export const uuidV7 = (n: number): string =>
  `0190d4a5-7b1e-7c3a-9f00-${n.toString(16).padStart(12, '0')}`;

const poolRecord = (
  given: Pick<
    PoolRecord,
    'name' | 'owner' | 'uid' | 'createdAt' | 'replicas' | 'source' | 'labels' | 'annotations'
  >,
): PoolRecord =>
  aStoredPool({
    ...given,
    updateRevision: 'abc',
    definition: {
      containers: [],
      network: 'none',
      startupTimeoutMs: 10_000,
      idleTimeoutMs: 1_800_000,
      maxLifetimeMs: 0,
      cpu: '500m',
      memory: '256Mi',
    },
  });

const tenantOf = ({ namespace, team, user }: Caller): Tenant => ({ namespace, team, user });

const pageOf = <T>(all: readonly T[], { limit, offset }: PageRequest): Page<T> => ({
  items: all.slice(offset, offset + limit),
  total: all.length,
  limit,
  offset,
});

/** Those that there are when they are asked: a test may put others in their place. */
const processesOf = (processes: () => ProcessDriver): { readonly processes: ProcessDriver } => ({
  get processes() {
    return processes();
  },
});
