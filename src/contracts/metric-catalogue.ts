import { MOST_CLUSTERS } from '../model/fleet/cluster.ts';

/**
 * The dashboard and the alert rules are checked against this catalogue. Names end in their unit;
 * times are in seconds. A label has few values, all defined by Sandpool: never a sandbox, a path, a
 * key or a user.
 */
export interface MetricSpec {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  readonly most: number;
  /** Keeps its value in `other`; at most 40 values. */
  readonly stays?: string;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /**
   * Exported as 0 from the start: otherwise a monitor would not see the first count as an increase.
   */
  readonly known?: readonly string[];
}

const counter = <const L extends readonly string[]>(help: string, labels: L, most = 40) =>
  ({ kind: 'counter', help, labels, most }) as const;
const counterOf = <const L extends readonly [string], const K extends readonly string[]>(
  help: string,
  labels: L,
  { known, most }: { readonly known: K; readonly most: number },
) => ({ kind: 'counter', help, labels, known, most }) as const;
const gauge = <const L extends readonly string[]>(help: string, labels: L, most = 40) =>
  ({ kind: 'gauge', help, labels, most }) as const;
const ofCluster = (help: string) => gauge(help, ['cluster_id'], MOST_CLUSTERS);
const histogram = <const L extends readonly string[]>(
  help: string,
  labels: L,
  { buckets, most = 40 }: { readonly buckets: readonly number[]; readonly most?: number },
) => ({ kind: 'histogram', help, labels, buckets, most }) as const;

const CLAIM_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30, 300];
/**
 * Includes the threshold of the alert SandpoolStoreSlow, because a quantile between buckets is only
 * an estimate.
 */
const CALL_SECONDS = [0.001, 0.01, 0.1, 0.5, 1, 5];
const REQUEST_SECONDS = [0.01, 0.1, 1, 5, 30];
const START_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const LATE_SECONDS = [0.01, 0.1, 1, 5, 30, 300];

export const METRICS = {
  sandpool_build_info: gauge(
    'Always 1. Labels name the version, its commit and date, and the assembly.',
    ['version', 'commit', 'date', 'assembly'],
    1,
  ),
  sandpool_ready: gauge('1 if GET /readyz answers 200, else 0.', []),
  sandpool_readiness_warnings: gauge(
    'Warnings of GET /readyz: parts that work, but worse than they should.',
    [],
  ),

  sandpool_claims_total: counterOf(
    'Claims by outcome: claimed, exhausted (no idle instance), quota, refused (another ' +
      '4xx), unavailable (503), gone (the client disconnected), failed.',
    ['result'],
    {
      known: ['claimed', 'exhausted', 'quota', 'refused', 'unavailable', 'gone', 'failed'],
      most: 8,
    },
  ),
  sandpool_claim_seconds: histogram(
    'Duration of claims, waiting included, by outcome.',
    ['result'],
    { buckets: CLAIM_SECONDS, most: 8 },
  ),
  sandpool_claim_step_seconds: histogram(
    'Duration of each step of a claim: find (the pool and an idle instance), wait (in the ' +
      'queue for an instance), admit (the check of the quota), write (the conditional update ' +
      'of the record), files (those sent with the claim).',
    ['step'],
    { buckets: CLAIM_SECONDS, most: 5 },
  ),
  sandpool_claims_waiting: gauge('Claims that are waiting for an instance on this replica.', []),

  sandpool_pools: gauge('Pools by phase.', ['phase'], 8),
  sandpool_pools_without_idle: gauge('Pools that want replicas but have no idle instance.', []),
  sandpool_instances: gauge('Instances of all pools by state.', ['state'], 8),
  sandpool_pool_instances: gauge(
    'Instances of a pool by state, for the 50 pools with the most replicas. The other ' +
      'pools are summed under "(others)".',
    ['pool_namespace', 'pool', 'state'],
    160,
  ),
  sandpool_pool_replicas: gauge(
    'Replicas that a pool wants, for the 50 pools with the most replicas.',
    ['pool_namespace', 'pool'],
    60,
  ),
  sandpool_start_seconds: histogram('Time from ordering an instance until it can be claimed.', [], {
    buckets: START_SECONDS,
  }),
  sandpool_start_failures_total: counterOf(
    'Failed starts: refused (by the spawner or Kubernetes), died (before the instance was ' +
      'ready), timeout. Starts that were deferred for lack of capacity are not counted.',
    ['cause'],
    { known: ['refused', 'died', 'timeout'], most: 4 },
  ),
  sandpool_starts_deferred_total: counter(
    'Starts that were deferred for lack of capacity. They are not failures.',
    [],
  ),

  sandpool_transitions_total: counter(
    'Transitions of state machines, by the state they enter.',
    ['kind', 'state'],
    60,
  ),
  sandpool_actors: gauge('State machines that this replica hosts.', ['kind'], 5),
  sandpool_actors_rebuilt_total: counter(
    'State machines that threw and were rebuilt. Always a bug in Sandpool.',
    [],
  ),
  sandpool_actors_broken: gauge(
    'State machines that threw five times in a row and were stopped. Their sandbox, pool, ' +
      'member, group or approval no longer changes.',
    ['kind'],
    5,
  ),
  sandpool_deadline_late_seconds: histogram(
    "Delay between the due time of a state machine's deadline and its delivery.",
    [],
    { buckets: LATE_SECONDS },
  ),
  sandpool_outbox_intents: gauge('Intents of state machines in progress.', ['host'], 4),
  sandpool_outbox_oldest_seconds: gauge('Age of the oldest intent in progress.', ['host'], 4),
  sandpool_intents_dropped_total: counter(
    'Intents of a leader that were dropped because its lease had ended.',
    ['host'],
    4,
  ),
  sandpool_fenced_writes_total: counter(
    'Writes of a leader that were not sent because its lease had ended.',
    [],
  ),
  sandpool_conflicts_total: counter(
    'Conditional writes that were rejected because the record had changed.',
    ['operation'],
    12,
  ),
  sandpool_api_key_seconds_left: gauge(
    'Time until the next API key expires, by role. Counts keys issued for four weeks or ' + 'more.',
    ['role'],
    2,
  ),
  sandpool_certificate_seconds_left: gauge(
    'Time until the certificate of the REST API expires; negative if it has expired.',
    [],
  ),
  sandpool_disk_free_bytes: gauge('Free space on the disk of the data folder, on one machine.', []),
  sandpool_disk_bytes: gauge('Size of the disk of the data folder, on one machine.', []),
  sandpool_shards_led: gauge('Shards that this replica leads; 16 over all replicas.', []),

  sandpool_http_requests_total: {
    ...counter(
      'Requests by route template and status. Route "none" stands for unknown paths. Route ' +
        '"other" keeps the status.',
      ['method', 'route', 'status'],
      300,
    ),
    stays: 'status',
  },
  sandpool_http_seconds: histogram(
    'Duration of requests by route template. Streams count until the response begins.',
    ['method', 'route'],
    { buckets: REQUEST_SECONDS, most: 90 },
  ),
  sandpool_http_turned_away_total: counter(
    'Requests that were answered with 503 at once because the daemon was overloaded.',
    [],
  ),

  sandpool_costly_waiting: gauge(
    'Requests that are waiting for the event loop, previews included. Tenants take turns.',
    [],
  ),
  sandpool_costly_refused_total: counter(
    'Requests that were answered with 429 because too many requests of their tenant were ' +
      'waiting.',
    [],
  ),
  sandpool_costly_seconds_total: counter(
    'Time that requests blocked the event loop, counted in pieces of 5 ms or more.',
    [],
  ),

  sandpool_answer_bytes: gauge(
    'Memory of responses in progress, in bytes on the wire: from the output of a command ' +
      'until the client has received the response.',
    [],
  ),
  sandpool_answer_bytes_most: gauge(
    'Limit of sandpool_answer_bytes, set by answers.memoryPercent.',
    [],
  ),
  sandpool_answers_refused_total: counterOf(
    'Refused requests and ended commands whose response did not fit in memory: ' +
      "share (429, the tenant's share was used up), all (503, the memory " +
      'of all tenants was).',
    ['bound'],
    { known: ['share', 'all'], most: 2 },
  ),

  sandpool_driver_seconds: histogram(
    'Duration of calls to the driver, which runs the sandboxes.',
    ['operation'],
    {
      buckets: CALL_SECONDS,
      most: 14,
    },
  ),
  sandpool_driver_calls_total: counter(
    'Calls to the driver by outcome: done, conflict, unknown, fenced, deferred, failed.',
    ['operation', 'outcome'],
    60,
  ),
  sandpool_store_seconds: histogram(
    'Duration of calls to the store: statements of the database, scripts of Redis, ' +
      'requests to the API server by kind of object.',
    ['store', 'operation'],
    { buckets: CALL_SECONDS, most: 72 },
  ),
  sandpool_store_failures_total: counter(
    'Failed calls to the store. Refusals of the API server (409, 404) are not counted.',
    ['store', 'operation'],
    72,
  ),
  sandpool_mirror_silence_seconds: gauge(
    'Time since a mirror last received anything from its source.',
    ['mirror'],
    16,
  ),
  sandpool_mirror_restarts_total: counter('Watches of a mirror that ended early.', ['mirror'], 16),

  sandpool_history_forgotten_early_total: counter(
    'Finished sandboxes that were deleted from the history before history.retention, ' +
      'because the history was too large or Redis ran short of memory.',
    [],
  ),

  sandpool_audit_lines_total: counter(
    'Audit lines: written; lost (the file could not be written, and too many lines were ' +
      'waiting); missing (not in the files when the daemon started).',
    ['outcome'],
    3,
  ),
  sandpool_audit_waiting_lines: gauge('Audit lines that are not in the file yet.', []),
  sandpool_audit_unwritable_seconds: gauge(
    'Time for which the audit could not be written; 0 if it can be.',
    [],
  ),

  sandpool_approvals_pending: gauge(
    "Requests that are waiting for a person's decision, by age: under a minute, under five " +
      'minutes, longer.',
    ['age'],
    3,
  ),
  sandpool_approvals_oldest_pending_seconds: gauge(
    "Time for which the oldest request has waited for a person's decision; 0 if no request " +
      'waits.',
    [],
  ),
  sandpool_approvals: gauge('Stored approvals, by status.', ['status'], 5),
  sandpool_approvals_held_requests: gauge(
    'Requests that keep their connection open until a person decides.',
    [],
  ),
  sandpool_webhook_messages_total: counterOf(
    'Messages about approvals to webhooks: delivered; retried (an attempt failed, and ' +
      'another follows); given-up (moved to the dead letters).',
    ['outcome'],
    { known: ['delivered', 'retried', 'given-up'], most: 3 },
  ),
  sandpool_webhook_messages_waiting: gauge('Messages that no webhook has accepted yet.', []),

  sandpool_autoscaling_decisions_total: counter(
    'Decisions of autoscaling groups that were applied, by cause and by direction (the ' +
      'group grew or shrank); direction `none` if the group could not grow.',
    ['cause', 'direction'],
    24,
  ),

  sandpool_cluster_connected: ofCluster(
    'On a manager, by joined cluster: 1 if this replica has a link to the cluster that ' +
      'accepts requests, else 0.',
  ),
  sandpool_cluster_links: ofCluster(
    'Links of the cluster to this replica, one for each replica of the cluster. Silent and ' +
      'closing links are included.',
  ),
  sandpool_cluster_heartbeat_age_seconds: ofCluster(
    'Time since this replica last heard from the cluster. There is no series before the ' +
      'first message.',
  ),
  sandpool_cluster_latency_seconds: ofCluster(
    'Round-trip time of a heartbeat over the fastest link to the cluster.',
  ),
  sandpool_cluster_requests_total: counter(
    "Attempts to forward a client's request to the cluster: answered (by the cluster, with " +
      'any status), unavailable (503: there was no link, no response, or the link was full). ' +
      'Clusters that a list left out are not counted.',
    ['cluster_id', 'outcome'],
    2 * MOST_CLUSTERS,
  ),
  sandpool_links_refused_total: counter(
    'Links that a manager refused: not-joined (no cluster has this id and key, or its ' +
      'token is not valid), unproved (it does not have the key that it names), address (not ' +
      'in fleet.addresses), version, runs-twice (a copy of a daemon that is linked), ' +
      'not-opened (the connection closed early, or the check failed).',
    ['reason'],
    6,
  ),
  sandpool_manager_links: gauge(
    'On a worker, by address of fleet.managers: links of this replica to the manager that ' +
      'answers there, whichever address was dialled.',
    ['manager'],
    8,
  ),
  sandpool_manager_dials_failed_total: counter(
    'On a worker, by address of fleet.managers: failed dials to it since the admin last ' +
      'allowed managers.',
    ['manager'],
    8,
  ),
  sandpool_manager_cut_off: gauge(
    '1 if the cluster’s own admin has cut off the manager, else 0.',
    ['manager'],
    8,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

type Catalogue = typeof METRICS;
type NamesOf<Kind> = {
  [Name in keyof Catalogue]: Catalogue[Name]['kind'] extends Kind ? Name : never;
}[keyof Catalogue];

export type MetricName = keyof Catalogue;
export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;
export type LabelsOf<Name extends MetricName> = Readonly<
  Record<Catalogue[Name]['labels'][number], string>
>;
