import type { WaitedPool } from '../contracts/coordination/claims.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { QuotaResource } from '../model/pools/quota.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';

/** Spreads activity marks over a cluster's slots. */
export const ACTIVITY_BUCKETS = 16;

/** Keys of one script share a hash tag in braces, so that they lie on one node of a cluster. */
export const keysOf = (prefix: string) => {
  /** One slot for a team: a claim touches its caller and the pool, which another member may own. */
  const ofTenant = (tenant: Tenant): string =>
    `${prefix}:{${tenant.namespace}}:${tenantKey(tenant)}`;
  const ofBucket = (bucket: number): string => `${prefix}:{activity-${bucket}}`;
  return {
    /**
     * Hash: `:run`, `:since`, `:total`, `:version`, and `amount|version|parts` by name
     * (lua/include/usage_entry.lua).
     */
    usage: (tenant: Tenant, resource: QuotaResource): string =>
      `${ofTenant(tenant)}:usage:${resource}`,
    /** By time: names reserved and not yet settled. */
    pendingReservations: (tenant: Tenant, resource: QuotaResource): string =>
      `${ofTenant(tenant)}:unsettled:${resource}`,
    /**
     * Sorted set of a pool's waiters, and hash of live replicas (lua/include/waiting_order.lua).
     */
    waiting: ({ owner, uid }: WaitedPool): string => `${ofTenant(owner)}:waiting:${uid}`,
    waitingSeen: ({ owner, uid }: WaitedPool): string => `${ofTenant(owner)}:waiting-seen:${uid}`,
    /** Text `time|token|run` of a running rebuild. */
    rebuild: (tenant: Tenant): string => `${ofTenant(tenant)}:rebuild`,
    /** Hash: `body`; `owner`, `until`, `instance` and `place` until it has an `answer`. */
    request: (tenant: Tenant, mark: string): string => `${ofTenant(tenant)}:request:${mark}`,
    /** Sorted by the moment at which each is forgotten. */
    requests: (tenant: Tenant): string => `${ofTenant(tenant)}:requests`,
    /** Hash: bytes by request, and `:bytes`, their sum. */
    answers: (tenant: Tenant): string => `${ofTenant(tenant)}:answers`,
    /** For requests under keys that managers made; the hash stays empty. */
    managerRequests: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-requests`,
    managerAnswers: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-answers`,
    /** Sorted set of tenants by reported bytes; text: the total. */
    answerShares: `${prefix}:{answers}:shares`,
    answerBytes: `${prefix}:{answers}:bytes`,
    /** Hash: `:run`, `:since`, and times by id. */
    activity: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:marks`,
    activityBucket: (bucket: number): string => `${ofBucket(bucket)}:marks`,
    /** Sorted set of replicas by expiry. */
    working: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:working:${id}`,
    /** The end as JSON. */
    ended: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:ended:${id}`,
    /**
     * By SHA-256. `tokens`: hash; `tokenTimes`: sorted by time; `tokenCounts`: hash by sandbox and
     * tenant.
     */
    tokens: `${prefix}:{tokens}:waiting`,
    tokenTimes: `${prefix}:{tokens}:times`,
    tokenCounts: `${prefix}:{tokens}:counts`,
    /** JSON by the hash of the token. */
    consoleSessions: `${prefix}:{console}:sessions`,
    /** Hash by id, and sorted set of ids by time. */
    deadLetters: (receiver: string): string => `${prefix}:{webhooks}:letters:${receiver}`,
    deadLetterTimes: (receiver: string): string => `${prefix}:{webhooks}:times:${receiver}`,
    /** Count of the window. */
    rate: (name: string): string => `${prefix}:rate:${name}`,
    /** Sorted by last heartbeat. */
    replicas: `${prefix}:{leases}:replicas`,
    /** Sorted by last heartbeat. */
    leaseTakers: `${prefix}:{leases}:takers`,
    /** Hash by shard. */
    epochs: `${prefix}:{leases}:epochs`,
    /** Text `replica random`: redlock's lock. */
    lease: (shard: number): string => `${prefix}:{leases}:shard-${shard}`,
    /** Hash by cluster: the linked start with its replicas, as JSON. */
    clusterStarts: `${prefix}:{fleet}:starts`,
    revoked: `${prefix}:revoked`,
    demand: `${prefix}:demand`,
    asked: (replica: string): string => `${prefix}:asked:${replica}`,
    /** Stream; hash with its position; sorted set of keys by number. */
    events: `${prefix}:{events}:stream`,
    eventState: `${prefix}:{events}:state`,
    eventsSeen: `${prefix}:{events}:seen`,
    audit: `${prefix}:{audit}`,
    history: `${prefix}:{history}`,
  };
};

export type Keys = ReturnType<typeof keysOf>;

const bucketOf = (id: InstanceId): number => {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (hash * 31 + id.charCodeAt(i)) >>> 0;
  return hash % ACTIVITY_BUCKETS;
};
