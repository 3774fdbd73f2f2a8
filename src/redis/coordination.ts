import type { RecentAudit } from '../contracts/audit.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import type { Activity } from '../contracts/coordination/activity.ts';
import type { Claims } from '../contracts/coordination/claims.ts';
import type { DeadLetters } from '../contracts/coordination/dead-letters.ts';
import type { EventLog } from '../contracts/coordination/event-log.ts';
import type { Inquiries } from '../contracts/coordination/inquiries.ts';
import type { Leases } from '../contracts/coordination/leases.ts';
import type { Quotas } from '../contracts/coordination/quotas.ts';
import type { Requests } from '../contracts/coordination/requests.ts';
import type { DemandSignals, Revocations } from '../contracts/coordination/signals.ts';
import type { UsageRecords } from '../contracts/usage-records.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { ByteBounds } from '../lib/byte-shares.ts';
import { RedisActivity } from './activity.ts';
import { RedisChannels } from './channels.ts';
import { RedisClaims } from './claims.ts';
import { RedisEventLog } from './event-log.ts';
import { RedisHealth } from './health.ts';
import { RedisInquiries } from './inquiries.ts';
import { keysOf } from './keys.ts';
import { redisClusterStarts } from './leases/cluster-starts.ts';
import { RedisLeaseStore } from './leases/lease-store.ts';
import { RedisLeases } from './leases/leases.ts';
import { RedisQuotas } from './quotas.ts';
import { redisDeadLetters } from './dead-letters.ts';
import { redisConsoleSessions } from './console-sessions.ts';
import { redisRateLimits } from './rate-limits.ts';
import { RedisRecentAudit } from './recent-audit.ts';
import { RedisLink } from './redis-link.ts';
import { RedisRequests } from './requests.ts';
import type { RedisSettings } from './settings.ts';
import { redisTokens } from './tokens.ts';

export interface RedisCoordinationOptions {
  readonly settings: RedisSettings;
  /** Differs from an earlier process of the replica that may still run. */
  readonly replica: string;
  readonly usage: UsageRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** Answers beyond this are dropped early. */
  readonly keptAnswers: ByteBounds;
  readonly metrics: Metrics;
  /** For pending writes before records are read, in ms; REBUILD_WAIT_MS by default. */
  readonly rebuildWaitMs?: number;
}

export interface RedisCoordination {
  readonly coordination: Coordination;
  readonly recentAudit: RecentAudit;
  readonly deadLetters: DeadLetters;
  /** In ms since the epoch; undefined before the first answer. */
  readonly time: () => number | undefined;
  /** Retries in the background. Never rejects. */
  readonly start: () => Promise<void>;
  /** Releases no leases: the supervisor does so before. Never rejects. */
  readonly stop: () => Promise<void>;
}

export const redisCoordination = (options: RedisCoordinationOptions): RedisCoordination => {
  const parts = partsOf(options);
  const { keys, link, leaseLink, channels, health } = parts;
  const { quotas, claims, leases, requests, activity, events } = parts;
  return {
    coordination: {
      ...quotasOf(quotas),
      ...claimsOf(claims),
      ...leasesOf(leases),
      ...requestsOf(requests),
      ...activityOf(activity),
      ...eventsOf(events),
      ...signalsOf(channels),
      ...inquiriesOf(parts.inquiries),
      ...redisTokens({ link, keys }),
      ...redisRateLimits({ link, keys }),
      ...redisConsoleSessions({ link, keys }),
      ...redisClusterStarts({ link, keys }, options.replica),
      describe: () => health.describe(),
    },
    recentAudit: new RedisRecentAudit({ link, keys, log: options.log }),
    deadLetters: redisDeadLetters({ link, keys }),
    time: () => link.time.now(),
    start: async () => {
      await Promise.all([link.start(), leaseLink.start(), channels.start()]);
      await Promise.all([activity.start(), health.start()]);
      requests.start();
      claims.start();
      events.start();
      leases.start();
    },
    stop: async () => {
      requests.stop();
      claims.stop();
      health.stop();
      await Promise.all([leases.stop(), activity.stop(), events.stop()]);
      link.stop();
      leaseLink.stop();
      channels.stop();
    },
  };
};

const partsOf = ({
  settings,
  replica,
  usage,
  keptAnswers,
  clock,
  log,
  metrics,
  ...options
}: RedisCoordinationOptions) => {
  const keys = keysOf(settings.prefix);
  const link = new RedisLink({ settings, log, metrics, name: 'requests' });
  const leaseLink = new RedisLink({ settings, log, metrics, name: 'leases' });
  const store = new RedisLeaseStore({ link: leaseLink, keys, log, replica });
  const leases = new RedisLeases({ store, log, replica });
  const requests = new RedisRequests({ link, keys, log, bounds: keptAnswers });
  const quotas = new RedisQuotas({
    link,
    keys,
    log,
    clock,
    replica,
    usage,
    replicas: () => leases.replicas(),
    ...options,
  });
  const channels = new RedisChannels({ link, settings, keys, log, others: [keys.asked(replica)] });
  return {
    keys,
    link,
    leaseLink,
    leases,
    requests,
    quotas,
    channels,
    claims: new RedisClaims({ link, keys, log, replica, requests, quotas }),
    activity: new RedisActivity({ link, keys, replica }),
    events: new RedisEventLog({ link, keys, log }),
    inquiries: new RedisInquiries({ channels, keys, clock, replica }),
    health: new RedisHealth([link, leaseLink], { channels, log }),
  };
};

const quotasOf = (quotas: RedisQuotas): Quotas => ({
  reserve: (...call) => quotas.reserve(...call),
  withdraw: (...call) => quotas.withdraw(...call),
  confirm: (...call) => quotas.confirm(...call),
  stillReserved: (...call) => quotas.stillReserved(...call),
  release: (...call) => quotas.release(...call),
  used: (...call) => quotas.used(...call),
  whenKnown: (tenant) => quotas.whenKnown(tenant),
  expectUse: (tenant) => {
    quotas.expectUse(tenant);
  },
  restore: () => quotas.restore(),
  unreconciled: (...call) => quotas.unreconciled(...call),
  parts: (...call) => quotas.parts(...call),
  reconcile: (...call) => quotas.reconcile(...call),
});

const claimsOf = (claims: RedisClaims): Claims => ({
  joinWaiting: (...call) => claims.joinWaiting(...call),
  leaveWaiting: (...call) => claims.leaveWaiting(...call),
  waiting: (...call) => claims.waiting(...call),
  admitClaim: (...call) => claims.admitClaim(...call),
});

const leasesOf = (leases: RedisLeases): Leases => ({
  lease: (...call) => leases.lease(...call),
  follow: (...call) => leases.follow(...call),
  giveUp: (...call) => leases.giveUp(...call),
  leave: (...call) => leases.leave(...call),
  join: (...call) => leases.join(...call),
  replicas: (...call) => leases.replicas(...call),
  holders: () => leases.holders(),
});

const requestsOf = (requests: RedisRequests): Requests => ({
  openRequest: (...call) => requests.openRequest(...call),
  placeRequest: (...call) => requests.placeRequest(...call),
  confirmRequest: (...call) => requests.confirmRequest(...call),
  keepAnswer: (...call) => requests.keepAnswer(...call),
  giveUpRequest: (...call) => requests.giveUpRequest(...call),
});

const activityOf = (activity: RedisActivity): Activity => ({
  touch: (...call) => activity.touch(...call),
  work: (...call) => activity.work(...call),
  expire: (...call) => activity.expire(...call),
  markEnded: (...call) => activity.markEnded(...call),
  ended: (...call) => activity.ended(...call),
});

const eventsOf = (events: RedisEventLog): EventLog => ({
  publishEvent: (...call) => events.publishEvent(...call),
  followEvents: (...call) => events.followEvents(...call),
});

const signalsOf = (channels: RedisChannels): Revocations & DemandSignals => ({
  publishRevocation: (keyId) => {
    channels.publishRevocation(keyId);
  },
  subscribeRevocations: (...call) => channels.subscribeRevocations(...call),
  publishDemand: (word) => {
    channels.publishDemand(word);
  },
  subscribeDemand: (report) => channels.subscribeDemand(report),
});

const inquiriesOf = (inquiries: RedisInquiries): Inquiries => ({
  askReplica: (...call) => inquiries.askReplica(...call),
  answerReplicas: (answer) => inquiries.answerReplicas(answer),
});
