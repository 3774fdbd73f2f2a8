import type { WaitedPool } from '../contracts/coordination/claims.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { QuotaResource } from '../model/pools/quota.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';

/** Number of hashes for activity marks, so that they spread over a cluster's slots. */
export const ACTIVITY_BUCKETS = 16;

/**
 * All key names. Keys of one script share a hash tag in braces, so that they lie on one node of a
 * cluster. Tags: each tenant, each activity bucket, leases, tokens, history, events, webhooks,
 * fleet and audit.
 */
export const keysOf = (prefix: string) => {
  /**
   * One slot for a team: a claim's admission touches its caller and the pool, which another member
   * of the team may own.
   */
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
    /** Sorted set by time: names reserved and not yet settled. */
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
    /** Sorted set of the keys of a tenant's requests, by the moment at which they are forgotten. */
    requests: (tenant: Tenant): string => `${ofTenant(tenant)}:requests`,
    /** Hash: by the key of a request the bytes of its answer, and `:bytes`, their sum. */
    answers: (tenant: Tenant): string => `${ofTenant(tenant)}:answers`,
    /** Such a set of requests under keys that managers made, and a hash that stays empty. */
    managerRequests: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-requests`,
    managerAnswers: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-answers`,
    /**
     * Sorted set of tenants by the bytes of their answers, as last reported; and text: the total.
     */
    answerShares: `${prefix}:{answers}:shares`,
    answerBytes: `${prefix}:{answers}:bytes`,
    /** Hash: `:run`, `:since`, and by id the time of the last activity. */
    activity: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:marks`,
    activityBucket: (bucket: number): string => `${ofBucket(bucket)}:marks`,
    /** Sorted set of replicas with work in the sandbox, by expiry. */
    working: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:working:${id}`,
    /** Text: the end as JSON. */
    ended: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:ended:${id}`,
    /**
     * Unused tokens by their SHA-256. `tokens`: a hash; `tokenTimes`: a sorted set by time;
     * `tokenCounts`: a hash of each sandbox's and tenant's number.
     */
    tokens: `${prefix}:{tokens}:waiting`,
    tokenTimes: `${prefix}:{tokens}:times`,
    tokenCounts: `${prefix}:{tokens}:counts`,
    /** Hash of console sessions as JSON, by the hash of their token. */
    consoleSessions: `${prefix}:{console}:sessions`,
    /** Hash of a receiver's dead letters by id, and sorted set of their ids by time. */
    deadLetters: (receiver: string): string => `${prefix}:{webhooks}:letters:${receiver}`,
    deadLetterTimes: (receiver: string): string => `${prefix}:{webhooks}:times:${receiver}`,
    /** Text: the count of the window. */
    rate: (name: string): string => `${prefix}:rate:${name}`,
    /** Sorted set of live replicas, by last heartbeat. */
    replicas: `${prefix}:{leases}:replicas`,
    /** Sorted set of replicas that take leases, by last heartbeat. */
    leaseTakers: `${prefix}:{leases}:takers`,
    /** Hash of last epochs, by shard. */
    epochs: `${prefix}:{leases}:epochs`,
    /** Text `replica random`: redlock's lock of a shard. */
    lease: (shard: number): string => `${prefix}:{leases}:shard-${shard}`,
    /** Hash by worker cluster: the linked start of its daemon with its replicas, as JSON. */
    clusterStarts: `${prefix}:{fleet}:starts`,
    /** Channel of revoked API keys, by id. */
    revoked: `${prefix}:revoked`,
    /** Channel of claims' unmet demand. */
    demand: `${prefix}:demand`,
    /** Channel of a replica's questions and answers. */
    asked: (replica: string): string => `${prefix}:asked:${replica}`,
    /** Stream; hash with its position; sorted set of keys by number. */
    events: `${prefix}:{events}:stream`,
    eventState: `${prefix}:{events}:state`,
    eventsSeen: `${prefix}:{events}:seen`,
    /** Stream of the audit's last lines. */
    audit: `${prefix}:{audit}`,
    /** Prefix of all history keys. */
    history: `${prefix}:{history}`,
  };
};

export type Keys = ReturnType<typeof keysOf>;

const bucketOf = (id: InstanceId): number => {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (hash * 31 + id.charCodeAt(i)) >>> 0;
  return hash % ACTIVITY_BUCKETS;
};
