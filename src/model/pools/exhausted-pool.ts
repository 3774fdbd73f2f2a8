import type { PoolCounts } from './pool.ts';
import { Refusal } from '../refusals.ts';

export interface ExhaustedPool {
  readonly name: string;
  readonly env?: string;
  /** `{team}/{user}`, if it is not the claimant. */
  readonly of?: string;
}

interface Hindrance {
  readonly reason: string;
  readonly message: string;
  readonly since?: number;
}

type Counts = Omit<PoolCounts, 'unavailable'> & {
  readonly unavailable?: number;
  readonly missing?: number;
};

/** The hint only advises requests that this caller may make. */
export const noIdleInstance = (
  pool: ExhaustedPool,
  counts: Counts,
  hindrance?: Hindrance,
): Refusal =>
  new Refusal('POOL_EXHAUSTED', 'no idle pods available in pool', {
    detail: {
      poolName: pool.name,
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
      hint: hindrance ? hintAgainst(pool, hindrance) : hintOf(pool, counts),
    },
    retryAfter: counts.starting > 0 && !hindrance ? 1 : 5,
  });

const hintOf = (
  pool: ExhaustedPool,
  { starting, running, unavailable = 0, missing = 0 }: Counts,
): string => {
  if (starting > 0) return 'instances are starting; try again shortly';
  if (unavailable > 0)
    return (
      'unclaimed instances are there that can not be handed out now, as their events say; ' +
      'try again shortly'
    );
  if (missing > 0)
    return 'instances wait to be started; claim with waitTimeoutSeconds, or try again shortly';
  if (running === 0) return enlarge(pool);
  return `give a sandbox back with DELETE /v1/sandboxes/{sandboxId}, or ${enlarge(pool)}`;
};

const enlarge = ({ name, env, of }: ExhaustedPool): string => {
  if (of !== undefined) return `have ${of}, whose pool it is, enlarge it`;
  if (env === undefined) return `raise replicas with PUT /v1/sandboxpools/${name}`;
  return (
    'claim with waitTimeoutSeconds so that one is started for you, or raise maxReplicas ' +
    `with PUT /v1/envs/${env}/sandboxpools/${name}; GET /v1/envs/${env} says what keeps it ` +
    'as it is'
  );
};

const hintAgainst = (pool: ExhaustedPool, { reason, message }: Hindrance): string => {
  if (reason === 'Unschedulable' && KEPT_OUT.test(message) && !NO_ROOM.test(message))
    return CLOSED_NODES;
  const change = changing(pool);
  if (reason === 'ImageUnavailable')
    return (
      `the image can not be had: name another as overrides.image of ${change}, or give the ` +
      `registry's password as overrides.imagePullSecret; ${AGAIN}`
    );
  if (reason === 'Unschedulable')
    return (
      `no node has room: ask for less cpu and memory ${resizing(pool)}, give a sandbox back, ` +
      `or have nodes added; ${AGAIN}`
    );
  return `instances do not start: change what the problem names, by ${change}; ${AGAIN}`;
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
      ? `by PUT /v1/sandboxpools/${name}`
      : `as inlineResources of PUT /v1/envs/${env}/sandboxpools/${name}`,
  );

const sentBy = (of: string | undefined, request: string): string =>
  of === undefined
    ? `${request}, or in the template`
    : `${request}, which is for ${of} to send, or in the template`;

/** Nodes that take no new Pods, and nodes without capacity. */
const KEPT_OUT = /\btaints?\b|\bunschedulable\b/;
const NO_ROOM = /\bInsufficient\b|Too many pods/;
const CLOSED_NODES =
  'nodes take nothing new, as while they are drained or short of disk or memory: wait, or ' +
  'tell whoever runs the cluster; it is tried again by itself';
const AGAIN = 'it is tried again by itself';
