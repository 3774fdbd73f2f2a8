import { OUTBOX_PARTS } from '../actors/runtime/actor-runtime.ts';
import { PoolStats } from '../actors/pool/pool-stats.ts';
import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { AuditTrail } from '../services/audit/audit-trail.ts';
import type { Config } from './config/config.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import { silentMetrics, type Metrics } from '../contracts/metrics.ts';
import { MetricsListener } from './metrics/metrics-listener.ts';
import { PrometheusMetrics } from './metrics/prometheus-metrics.ts';
import type { TlsFiles } from '../http/server/tls-files.ts';
import type { ApiKeyMirror } from '../services/keys/api-keys.ts';
import type { ApprovalsOfDaemon } from './assembly/approvals.ts';
import type { EnvParts } from './envs.ts';
import { listenOrDoWithout } from './listening/listen-or-do-without.ts';
import type { Readiness } from '../services/operations.ts';
import { build } from './process/version.ts';

export interface MetricsParts {
  readonly metrics: Metrics;
  /** Undefined if metrics are not served. Rejects if the configured address is taken. */
  start(): Promise<string | undefined>;
  stop(): Promise<void>;
}

/** `given`: the address was configured explicitly. */
export const openMetrics = (config: Config, log: Log, given: boolean): MetricsParts => {
  const { listen } = config.metrics;
  if (listen === 'none')
    return { metrics: silentMetrics, start: async () => undefined, stop: async () => undefined };
  const metrics = new PrometheusMetrics();
  metrics.read('sandpool_build_info', () => [
    { labels: { ...build(), assembly: config.assembly }, value: 1 },
  ]);
  const listener = new MetricsListener(metrics, log);
  return {
    metrics,
    start: async () => {
      const place = await listenOrDoWithout({
        ...listen,
        given,
        setting: 'metrics.listen',
        listen: (at) => listener.start(at),
        taken: (fields) => {
          log.warn(fields, 'metrics-not-served');
        },
      });
      if (place === undefined) return undefined;
      const address = `http://${place}/metrics`;
      log.info({ address }, 'metrics-served');
      return address;
    },
    stop: () => listener.stop(),
  };
};

interface Told {
  readonly supervisor: Supervisor;
  readonly envs: Pick<EnvParts, 'members' | 'groups'>;
  readonly approvals: Pick<ApprovalsOfDaemon, 'host'>;
  readonly readiness: () => Readiness;
  readonly audit: Pick<AuditTrail, 'counts'> | undefined;
  readonly apiKeys: Pick<ApiKeyMirror, 'nextEnds'>;
  readonly clock: Clock;
  readonly tls: Pick<TlsFiles, 'endsAt'> | undefined;
}

/** Gauges read existing state on each scrape. */
export const registerGauges = (
  metrics: Metrics,
  { supervisor, envs, approvals, readiness, audit, apiKeys, tls, clock }: Told,
): void => {
  const stats = new PoolStats(supervisor.pools);
  metrics.read('sandpool_ready', () => one(readiness().ready ? 1 : 0));
  metrics.read('sandpool_readiness_warnings', () => one(readiness().warnings.length));
  metrics.read('sandpool_claims_waiting', () => one(supervisor.idle.lines.size));
  metrics.read('sandpool_pools', () => stats.phases());
  metrics.read('sandpool_pools_without_idle', () => one(stats.withoutIdle()));
  metrics.read('sandpool_instances', () => stats.instances());
  metrics.read('sandpool_pool_instances', () => stats.byPool());
  metrics.read('sandpool_pool_replicas', () => stats.replicas());
  const hosts = {
    sandbox: supervisor.actors,
    pool: supervisor.pools.actors,
    member: envs.members.actors,
    group: envs.groups.actors,
    approval: approvals.host.actors,
  };
  metrics.read('sandpool_actors', () =>
    Object.entries(hosts).map(([kind, { transitions }]) => ({
      labels: { kind },
      value: transitions.size,
    })),
  );
  metrics.read('sandpool_actors_broken', () =>
    Object.entries(hosts).map(([kind, { rebuilds }]) => ({
      labels: { kind },
      value: rebuilds.broken.length,
    })),
  );
  const { outbox } = supervisor.runtime;
  for (const host of OUTBOX_PARTS) {
    const labels = { host };
    metrics.read('sandpool_outbox_intents', () => [
      { labels, value: outbox.numbers(host).underWay },
    ]);
    metrics.read('sandpool_outbox_oldest_seconds', () => [
      { labels, value: outbox.numbers(host).oldestMs / 1_000 },
    ]);
    metrics.read('sandpool_intents_dropped_total', () => [
      { labels, value: outbox.numbers(host).dropped },
    ]);
  }
  metrics.read('sandpool_shards_led', () => one(supervisor.shards.length));
  metrics.read('sandpool_api_key_seconds_left', () =>
    [...apiKeys.nextEnds()].map(([role, ms]) => ({ labels: { role }, value: ms / 1_000 })),
  );
  if (tls)
    metrics.read('sandpool_certificate_seconds_left', () =>
      one((tls.endsAt - clock.now()) / 1_000),
    );
  if (audit) tellAudit(metrics, audit);
};

const tellAudit = (metrics: Metrics, audit: Pick<AuditTrail, 'counts'>): void => {
  metrics.read('sandpool_audit_lines_total', () => {
    const { written, lost, missing } = audit.counts;
    return Object.entries({ written, lost, missing }).map(([outcome, value]) => ({
      labels: { outcome },
      value,
    }));
  });
  metrics.read('sandpool_audit_waiting_lines', () => one(audit.counts.waiting));
  metrics.read('sandpool_audit_unwritable_seconds', () => one(audit.counts.unwritableMs / 1_000));
};

const one = (
  value: number,
): readonly { readonly labels: Readonly<Record<never, string>>; readonly value: number }[] => [
  { labels: {}, value },
];
