import type { PoolCounts } from './pool.ts';
import { Refusal } from '../refusals.ts';

export interface ExhaustedPool {
  readonly name: string;
  readonly env?: string;
  /** `{team}/{user}`, if it is not the claimant. */
  readonly of?: string;
}

/** Remedies that a client can offer, as `detail.action.type`. Clients depend on the spelling. */
export const EXHAUSTED_ACTIONS = [
  'retry',
  'wait',
  'enlarge-pool',
  'change-image',
  'reduce-resources',
  'wait-for-nodes',
  'change-definition',
] as const;

interface Advice {
  readonly type: (typeof EXHAUSTED_ACTIONS)[number];
  /** Says the remedy to people, with requests of the API. */
  readonly hint: string;
}

/**
 * A reason why instances can't start: a code in CamelCase, the message, and the start (ms since the
 * epoch) if known.
 */
interface Hindrance {
  readonly reason: string;
  readonly message: string;
  readonly since?: number;
}

type Counts = Omit<PoolCounts, 'unavailable'> & {
  readonly unavailable?: number;
  readonly missing?: number;
};

/**
 * Refusal of a claim without an idle instance. The hint only advises requests that this caller may
 * make for this pool; `action` says the same to programs.
 */
export const noIdleInstance = (
  pool: ExhaustedPool,
  counts: Counts,
  hindrance?: Hindrance,
): Refusal => {
  const { type, hint } = hindrance ? adviceAgainst(pool, hindrance) : adviceOf(pool, counts);
  const { name: poolName, env, of: owner } = pool;
  return new Refusal('POOL_EXHAUSTED', 'no idle pods available in pool', {
    detail: {
      poolName,
      idle: counts.idle,
      running: counts.running,
      starting: counts.starting,
      stopping: counts.stopping + counts.retiring,
      failed: counts.failed,
      ...(hindrance
        ? {
            problem: hindrance.message,
            ...(hindrance.since === undefined
              ? {}
              : { problemSince: new Date(hindrance.since).toISOString() }),
          }
        : {}),
      hint,
      action: {
        type,
        poolName,
        ...(env === undefined ? {} : { env, member: poolName }),
        ...(owner === undefined ? {} : { owner }),
      },
    },
    retryAfter: counts.starting > 0 && !hindrance ? 1 : 5,
  });
};

const adviceOf = (
  pool: ExhaustedPool,
  { starting, running, unavailable = 0, missing = 0 }: Counts,
): Advice => {
  if (starting > 0) return { type: 'retry', hint: 'instances are starting; try again shortly' };
  if (unavailable > 0)
    return {
      type: 'retry',
      hint:
        'the unclaimed instances cannot be claimed at present, as their events show; try ' +
        'again shortly',
    };
  if (missing > 0)
    return {
      type: 'wait',
      hint: 'instances are waiting to start; claim with waitTimeoutSeconds, or try again shortly',
    };
  const larger = enlarge(pool);
  return {
    type: 'enlarge-pool',
    hint:
      running === 0
        ? larger
        : `delete a sandbox with DELETE /v1/sandboxes/{sandboxId}, or ${larger}`,
  };
};

const enlarge = ({ name, env, of }: ExhaustedPool): string => {
  if (of !== undefined) return `ask ${of}, who owns the pool, to enlarge it`;
  if (env === undefined) return `raise replicas with PUT /v1/sandboxpools/${name}`;
  return (
    'claim with waitTimeoutSeconds so that an instance is started for you, or raise ' +
    `maxReplicas with PUT /v1/envs/${env}/sandboxpools/${name}; GET /v1/envs/${env} shows ` +
    'what limits it'
  );
};

const adviceAgainst = (pool: ExhaustedPool, { reason, message }: Hindrance): Advice => {
  if (reason === 'Unschedulable' && KEPT_OUT.test(message) && !NO_ROOM.test(message))
    return { type: 'wait-for-nodes', hint: CLOSED_NODES };
  const change = changing(pool);
  if (reason === 'ImageUnavailable')
    return {
      type: 'change-image',
      hint:
        `the image cannot be pulled: name another image as overrides.image of ${change}, or ` +
        `set the registry's password as overrides.imagePullSecret; ${AGAIN}`,
    };
  if (reason === 'Unschedulable')
    return {
      type: 'reduce-resources',
      hint:
        `no node has enough capacity: request less cpu and memory ${resizing(pool)}, delete a ` +
        `sandbox, or add nodes; ${AGAIN}`,
    };
  return {
    type: 'change-definition',
    hint: `instances do not start: fix the cause with ${change}; ${AGAIN}`,
  };
};

const changing = ({ name, env, of }: ExhaustedPool): string => {
  const request = env === undefined ? `PUT /v1/sandboxpools/${name}` : `PATCH /v1/envs/${env}`;
  return sentBy(of, request);
};

/** Members have a size, envs do not. */
const resizing = ({ name, env, of }: ExhaustedPool): string =>
  sentBy(
    of,
    env === undefined
      ? `with PUT /v1/sandboxpools/${name}`
      : `as inlineResources of PUT /v1/envs/${env}/sandboxpools/${name}`,
  );

const sentBy = (of: string | undefined, request: string): string =>
  of === undefined
    ? `${request}, or in the template`
    : `${request}, which ${of} must send, or in the template`;

/** Nodes that take no new Pods, and nodes without capacity. */
const KEPT_OUT = /\btaints?\b|\bunschedulable\b/;
const NO_ROOM = /\bInsufficient\b|Too many pods/;
const CLOSED_NODES =
  'nodes accept no new Pods, for example because they are drained or short of disk or ' +
  "memory: wait, or tell the cluster's operator; Sandpool tries again automatically";
const AGAIN = 'Sandpool tries again automatically';
