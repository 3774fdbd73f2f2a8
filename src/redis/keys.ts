import type { WaitedPool } from '../contracts/coordination/claims.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { QuotaResource } from '../model/pools/quota.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';

/** Marks of activity are spread over so many hashes, so that no slot of a cluster has them all. */
export const ACTIVITY_BUCKETS = 16;

/**
 * Every key there is. What one script touches has one hash tag, in braces, so that it lies on one
 * node of a cluster: a tenant's, a bucket's of activity, and one each for leases, tokens, history,
 * events, webhooks, the fleet and audit.
 */
export const keysOf = (prefix: string) => {
  /**
   * In one slot for a whole team: a claim's admission is about who claims and about the pool, which
   * may be another's of the team.
   */
  const ofTenant = (tenant: Tenant): string =>
    `${prefix}:{${tenant.namespace}}:${tenantKey(tenant)}`;
  const ofBucket = (bucket: number): string => `${prefix}:{activity-${bucket}}`;
  return {
    /**
     * Hash: `:run`, `:total`, `:version`, and by name `amount|version|parts`
     * (scripts/usage-entry.ts).
     */
    usage: (tenant: Tenant, resource: QuotaResource): string =>
      `${ofTenant(tenant)}:usage:${resource}`,
    /** Sorted set of names that were reserved and not settled, by moment. */
    pendingReservations: (tenant: Tenant, resource: QuotaResource): string =>
      `${ofTenant(tenant)}:unsettled:${resource}`,
    /** Sorted set of those who wait for a pool, and hash of who lives: scripts/claims.ts. */
    waiting: ({ owner, uid }: WaitedPool): string => `${ofTenant(owner)}:waiting:${uid}`,
    waitingSeen: ({ owner, uid }: WaitedPool): string => `${ofTenant(owner)}:waiting-seen:${uid}`,
    /** Text: `moment|token|run` of a rebuild that is under way. */
    rebuild: (tenant: Tenant): string => `${ofTenant(tenant)}:rebuild`,
    /** Hash: `body`, `owner` and `until` while in flight, `instance`, `answer`. */
    request: (tenant: Tenant, mark: string): string => `${ofTenant(tenant)}:request:${mark}`,
    /** Sorted set of the keys of a tenant's requests, by the moment at which they are forgotten. */
    requests: (tenant: Tenant): string => `${ofTenant(tenant)}:requests`,
    /** Hash: by the key of a request the bytes of its answer, and `:bytes`, their sum. */
    answers: (tenant: Tenant): string => `${ofTenant(tenant)}:answers`,
    /** Such a set of requests under keys that managers made, and a hash that stays empty. */
    managerRequests: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-requests`,
    managerAnswers: (tenant: Tenant): string => `${ofTenant(tenant)}:manager-answers`,
    /** Sorted set of tenants by the bytes of their answers, as last told; text: their sum. */
    answerShares: `${prefix}:{answers}:shares`,
    answerBytes: `${prefix}:{answers}:bytes`,
    /** Hash: `:run`, `:since`, and by id the moment of the last activity. */
    activity: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:marks`,
    activityBucket: (bucket: number): string => `${ofBucket(bucket)}:marks`,
    /** Text: the end, as JSON. */
    /** Sorted set: replicas that carry something out in the sandbox, by until when that holds. */
    working: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:working:${id}`,
    ended: (id: InstanceId): string => `${ofBucket(bucketOf(id))}:ended:${id}`,
    /**
     * Tokens that wait to be used, by their SHA-256. `tokens`: a hash; `tokenTimes`: a sorted set
     * by moment; `tokenCounts`: a hash of how many each sandbox and tenant has.
     */
    tokens: `${prefix}:{tokens}:waiting`,
    tokenTimes: `${prefix}:{tokens}:times`,
    tokenCounts: `${prefix}:{tokens}:counts`,
    /** Hash by id, the hash of a token: a session of the console, as JSON. */
    consoleSessions: `${prefix}:{console}:sessions`,
    /** Hash of dead letters of a receiver by id, and sorted set of their ids by moment. */
    deadLetters: (receiver: string): string => `${prefix}:{webhooks}:letters:${receiver}`,
    deadLetterTimes: (receiver: string): string => `${prefix}:{webhooks}:times:${receiver}`,
    /** Text: how many there were in the window. */
    rate: (name: string): string => `${prefix}:rate:${name}`,
    /** Sorted set of live replicas, by their last heartbeat. */
    replicas: `${prefix}:{leases}:replicas`,
    /** Sorted set of those that take leases, by their last heartbeat. */
    leaseTakers: `${prefix}:{leases}:takers`,
    /** Hash by shard: its last epoch. */
    epochs: `${prefix}:{leases}:epochs`,
    /** Text: `replica random`, of redlock; the lock of a shard. */
    lease: (shard: number): string => `${prefix}:{leases}:shard-${shard}`,
    /** Hash by worker cluster: which start of its daemon is linked to which replicas, as JSON. */
    clusterStarts: `${prefix}:{fleet}:starts`,
    /** Channel of revoked API keys, by id. */
    revoked: `${prefix}:revoked`,
    /** Channel of what claims lack. */
    demand: `${prefix}:demand`,
    /** Channel of what a replica is asked and answered. */
    asked: (replica: string): string => `${prefix}:asked:${replica}`,
    /** Stream; hash of where it stands; sorted set of keys by number. */
    events: `${prefix}:{events}:stream`,
    eventState: `${prefix}:{events}:state`,
    eventsSeen: `${prefix}:{events}:seen`,
    /** Stream of the audit's last lines. */
    audit: `${prefix}:{audit}`,
    /** Beginning of all keys of history. */
    history: `${prefix}:{history}`,
  };
};

export type Keys = ReturnType<typeof keysOf>;

const bucketOf = (id: InstanceId): number => {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (hash * 31 + id.charCodeAt(i)) >>> 0;
  return hash % ACTIVITY_BUCKETS;
};
