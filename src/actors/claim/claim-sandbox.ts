import type { PoolDemand } from '../pool/pool-demand.ts';
import type { PoolSnapshot } from '../pool/pool-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { RequestNotNew } from '../request/idempotent-request.ts';
import type { METRICS } from '../../contracts/metric-catalogue.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { noIdleInstance } from '../../model/pools/exhausted-pool.ts';
import {
  featureDisabled,
  hasNetwork,
  Refusal,
  poolBeingDeleted,
  poolNotOwned,
  poolNotFound,
  unavailable,
} from '../../model/refusals.ts';
import { sameTenant, type Tenant, type Caller, mayUse } from '../../model/tenant.ts';
import type { ClaimRequest, SandboxOperations } from '../sandbox/commands/sandbox-operations.ts';
import type { SandboxView } from '../views.ts';
import {
  ClaimAttempts,
  claimSteps,
  type AttemptsOf,
  type ClaimAttemptsDeps,
} from './claim-attempts.ts';
import type { Candidate } from './claim-candidates.ts';
import { ClaimFiles, type ClaimFilesDeps } from './claim-files.ts';
import { openAndFind } from './earlier-claim.ts';
import { LaunchLimit } from './launched-candidate.ts';
import { mayBeClaimedUnder } from './find-claim-by-key.ts';
import { hindranceOf, missingFrom } from '../pool/start-hindrance.ts';
import { WaitingClaimLimit } from './waiting-claim-limit.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import { claimOrderOf } from '../../model/envs/claim-order.ts';

export interface ClaimSandboxDeps
  extends
    Omit<ClaimAttemptsDeps, 'waitingLimit' | 'launchLimit' | 'claimFiles' | 'driver'>,
    ClaimFilesDeps,
    ClaimablePoolsDeps {
  readonly driver: ClaimFilesDeps['driver'] &
    ClaimAttemptsDeps['driver'] &
    Pick<SandboxDriver, 'describe'>;
  readonly demand?: ClaimDemand;
  readonly metrics: Metrics;
}

export type ClaimDemand = Pick<PoolDemand, 'waits' | 'refused' | 'served'>;

/** `earlier`: claimed by an earlier request with the same key. */
interface Claimed {
  readonly of: 'this' | 'earlier';
  readonly sandbox: SandboxView;
}

type Claims = (...of: Parameters<SandboxOperations['claimSandbox']>) => Promise<Claimed>;
type Deps = ClaimSandboxDeps & ClaimAttemptsDeps;

/**
 * Claims one idle instance of the caller's or a shared pool (operation `POST /sandboxes`), in order
 * of arrival. For an env's name, tries a member with idle instances, and one other. The returned
 * sandbox is durable, and contains the request's files.
 */
export const claimSandbox = (deps: ClaimSandboxDeps): SandboxOperations['claimSandbox'] => {
  const claimFiles = new ClaimFiles(deps);
  const claim = claimUnderKey({
    ...deps,
    claimFiles,
    waitingLimit: new WaitingClaimLimit(),
    launchLimit: new LaunchLimit(),
  });
  const withFiles: Claims = async (caller, request, signal) => {
    const { files = [], step } = request;
    using _ = claimFiles.hold(caller, files);
    const claimed = await claim(caller, request, signal);
    const { of, sandbox } = claimed;
    await claimSteps(deps.metrics, step)('files', () =>
      of === 'this'
        ? claimFiles.write(sandbox.id, files, request)
        : claimFiles.writeAgain(sandbox.id, files, caller.namespace),
    );
    return claimed;
  };
  return measuredClaims(async (caller, request, signal) => {
    if (request.autoPause && !deps.driver.describe().pauses)
      throw featureDisabled('autoPause', 'support for pausing sandboxes');
    const claimed = await (request.files ? withFiles : claim)(caller, request, signal);
    return claimed.sandbox;
  }, deps.metrics);
};

const claimUnderKey = (deps: Deps): Claims => {
  const claim = claimOne(deps);
  return async (caller, request, signal) => {
    const { opening } = request;
    if (!opening) return await claim(caller, request, signal);
    // A waiting claim is open while it waits; otherwise its admission opens it.
    const early =
      opening.isOpen || (request.waitMs ?? 0) > 0 || mayBeClaimedUnder(deps, opening.mark);
    const found = early ? await openAndFind(deps, caller, opening) : undefined;
    if (found) return { of: 'earlier', sandbox: found };
    try {
      return await claim(caller, request, signal);
    } catch (error) {
      // An earlier request may still have succeeded.
      const earlier =
        opening.isOpen || opening.isFirst || error instanceof RequestNotNew
          ? undefined
          : await openAndFind(deps, caller, opening);
      if (earlier) return { of: 'earlier', sandbox: earlier };
      throw error;
    }
  };
};

const claimOne =
  (deps: Deps): Claims =>
  async (caller, request, signal) => {
    const { supervisor, coordination } = deps;
    const pools = withNetwork(await claimablePools(deps, caller, request.poolName), request);
    const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
    if (!pools.every(({ record }) => sameTenant(record.owner, owner))) {
      supervisor.reconcileLater(owner); // nobody else reconciles a tenant without pools
      await coordination.whenKnown(owner);
    }
    const [preferred, another] = pools;
    const elsewhere = request.image ? undefined : another;
    const of = { caller, owner, signal };
    if (elsewhere) {
      const now = { ...request, waitMs: 0 };
      const found =
        (await claimFrom(deps, preferred, { ...of, request: now })) ??
        (await claimFrom(deps, elsewhere, { ...of, request: now }));
      if (found) return found;
    }
    const found =
      elsewhere && !request.waitMs
        ? undefined
        : await claimFrom(deps, preferred, { ...of, request });
    if (found) return found;
    const { uid, env } = preferred.record;
    if (env) deps.demand?.refused(uid, caller.keyId);
    throw exhausted(supervisor, supervisor.pools.get(uid) ?? preferred, owner);
  };

type Pools = readonly [PoolSnapshot, ...PoolSnapshot[]];

const withNetwork = (pools: Pools, { withoutNetwork }: ClaimRequest): Pools => {
  if (!withoutNetwork) return pools;
  const [first, ...others] = pools.filter(({ record }) => record.definition.network === 'none');
  if (!first) throw hasNetwork(withoutNetwork.field);
  return [first, ...others];
};

interface ClaimOf extends Pick<AttemptsOf, 'owner' | 'request' | 'signal'> {
  readonly caller: Caller;
}

const claimFrom = async (
  deps: Deps,
  { record }: PoolSnapshot,
  { caller, owner, request, signal }: ClaimOf,
): Promise<Claimed | undefined> => {
  // Autoscaling ignores pools without an env, and launches for a claim.
  const demand = record.env && !request.image ? deps.demand : undefined;
  const found = await tryEach(deps, {
    owner,
    request,
    signal,
    pool: record,
    step: claimSteps(deps.metrics, request.step),
    waits: () => {
      demand?.waits(record.uid, caller.keyId);
    },
  });
  if (found?.of === 'this') demand?.served(record.uid, caller.keyId);
  return found;
};

/** Without `using`, whose compiled form costs each claim several microseconds. */
const tryEach = async (deps: ClaimAttemptsDeps, of: AttemptsOf): Promise<Claimed | undefined> => {
  const attempts = new ClaimAttempts(deps, of);
  try {
    for (let next = await attempts.next(); next; next = await attempts.next()) {
      try {
        requireClosed(deps, of, next);
        const askedAt = deps.clock.now();
        const admission = await attempts.admit(next);
        if (typeof admission === 'object') return { of: 'earlier', sandbox: admission };
        const sandbox = admission === 'admitted' ? await attempts.write(next, askedAt) : undefined;
        if (sandbox) return { of: 'this', sandbox };
      } finally {
        next.instance.release();
      }
    }
    return undefined;
  } finally {
    await attempts.close();
  }
};

/** An instance may be older than the pool's current template. */
const requireClosed = (
  { supervisor }: Pick<ClaimAttemptsDeps, 'supervisor'>,
  { request: { withoutNetwork } }: AttemptsOf,
  { instance: { id } }: Candidate,
): void => {
  if (withoutNetwork && supervisor.sandbox(id)?.context.record?.onHost)
    throw hasNetwork(withoutNetwork.field);
};

const exhausted = (supervisor: Supervisor, pool: PoolSnapshot, caller: Tenant): Refusal => {
  const { name, env, owner } = pool.record;
  const whose = {
    name,
    env: env?.name,
    of: sameTenant(owner, caller) ? undefined : `${owner.team}/${owner.user}`,
  };
  const counts = { ...pool.counts, missing: missingFrom(supervisor, pool) };
  return noIdleInstance(whose, counts, hindranceOf(supervisor, pool));
};

const measuredClaims =
  (claim: SandboxOperations['claimSandbox'], metrics: Metrics): SandboxOperations['claimSandbox'] =>
  async (caller, request, signal) => {
    const began = performance.now();
    const ended = (result: ClaimResult): void => {
      metrics.count('sandpool_claims_total', { result });
      metrics.observe('sandpool_claim_seconds', { result }, (performance.now() - began) / 1_000);
    };
    try {
      const sandbox = await claim(caller, request, signal);
      ended('claimed');
      return sandbox;
    } catch (error) {
      ended(resultOf(error, signal));
      throw error;
    }
  };

type ClaimResult = (typeof METRICS)['sandpool_claims_total']['known'][number];

const resultOf = (error: unknown, signal: AbortSignal | undefined): ClaimResult => {
  if (signal?.aborted && error === signal.reason) return 'gone';
  if (!(error instanceof Refusal)) return 'failed';
  switch (error.code) {
    case 'POOL_EXHAUSTED':
      return 'exhausted';
    case 'QUOTA_EXCEEDED':
      return 'quota';
    case 'UNAVAILABLE':
      return 'unavailable';
    default:
      return 'refused';
  }
};

interface ClaimablePoolsDeps {
  readonly supervisor: Supervisor;
  readonly envs: Pick<EnvMirror, 'named' | 'lookUp'>;
}

/**
 * A pool precedes an env of its name, unless it is a member of that env. Other namespaces are
 * searched only to answer that the pool is another tenant's.
 */
const claimablePools = async (
  { supervisor, envs }: ClaimablePoolsDeps,
  caller: Caller,
  name: string,
): Promise<readonly [PoolSnapshot, ...PoolSnapshot[]]> => {
  const { pools } = supervisor;
  const { namespace } = caller;
  const isKnown = pools.index.uidOf(namespace, name) !== undefined;
  if (!isKnown && !envs.named(namespace, name))
    await Promise.all([pools.lookUp(namespace, name), envs.lookUp(`${namespace}/${name}`)]);
  const pool = pools.named(namespace, name);
  if (!pool && pools.unhosted(namespace, name))
    throw unavailable('the pool cannot be used right now; try again');
  if (!pool || pool.record.env?.name === name) {
    const [first, ...others] = poolsOfEnv({ supervisor, envs }, caller, name);
    if (first) return [first, ...others];
  }
  if (!pool)
    throw pools.index.existsAnywhere(name)
      ? poolNotOwned()
      : poolNotFound(name, choicesOf(supervisor, caller));
  if (!mayUse(pool.record, caller)) throw poolNotOwned();
  if (pool.record.deleting !== false) throw poolBeingDeleted();
  return [pool];
};

const poolsOfEnv = (
  { supervisor, envs }: ClaimablePoolsDeps,
  caller: Caller,
  name: string,
): readonly PoolSnapshot[] => {
  const env = envs.named(caller.namespace, name);
  if (!env || env.deleting !== false || !mayUse(env, caller)) return [];
  return claimOrderOf(
    env.members.flatMap(({ name: member, config, deleting }) => {
      const pool = deleting === false ? supervisor.pools.ofMember(env, member) : undefined;
      if (!pool || pool.record.deleting !== false || !mayUse(pool.record, caller)) return [];
      const { priority = 0 } = config;
      return [{ name: member, idle: pool.counts.idle, priority, latencyMs: 0, pool }];
    }),
  ).map(({ pool }) => pool);
};

const MOST_CHOICES = 50;

const choicesOf = ({ pools }: Supervisor, caller: Caller) =>
  pools.index.listFor(caller, 0, MOST_CHOICES).ids.flatMap((uid) => {
    const pool = pools.get(uid);
    if (!pool) return [];
    const { record, counts } = pool;
    return [
      {
        name: record.name,
        namespace: record.owner.namespace,
        idle: counts.idle,
        running: counts.running,
        starting: counts.starting,
      },
    ];
  });
