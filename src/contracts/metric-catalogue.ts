import { MOST_CLUSTERS } from '../model/fleet/cluster.ts';

/**
 * Every metric of Sandpool's own, once: docs/metrics.md, the dashboard and the alert rules are held
 * against this. Names end in their unit; times are seconds. A label takes few values, all ours:
 * none names a sandbox, a path, a key or a user.
 */
export interface MetricSpec {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Combinations of labels that are told apart at most; what comes later counts under `other`. */
  readonly most: number;
  /** A label that keeps its value also then; of 40 values at most. */
  readonly stays?: string;
  /** Upper bounds in seconds, of a histogram. */
  readonly buckets?: readonly number[];
  /**
   * Values of its only label that are told from the start, as 0: else the first of them would be no
   * increase to whoever watches.
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
/** With the bound of SandpoolStoreSlow, between whose neighbours a quantile would be a guess. */
const CALL_SECONDS = [0.001, 0.01, 0.1, 0.5, 1, 5];
const REQUEST_SECONDS = [0.01, 0.1, 1, 5, 30];
const START_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const LATE_SECONDS = [0.01, 0.1, 1, 5, 30, 300];

export const METRICS = {
  sandpool_build_info: gauge(
    'Always 1: which version runs, built of which commit of which day, as which assembly.',
    ['version', 'commit', 'date', 'assembly'],
    1,
  ),
  sandpool_ready: gauge('1 where GET /readyz answers 200, else 0.', []),
  sandpool_readiness_warnings: gauge(
    'What works but gives less than it should: the warnings of GET /readyz.',
    [],
  ),

  sandpool_claims_total: counterOf(
    'Claims by how they ended: claimed, exhausted (none was idle), quota, refused ' +
      '(another 4xx), unavailable (503), gone (its client left), failed.',
    ['result'],
    {
      known: ['claimed', 'exhausted', 'quota', 'refused', 'unavailable', 'gone', 'failed'],
      most: 8,
    },
  ),
  sandpool_claim_seconds: histogram(
    'How long claims took, waiting included, by how they ended.',
    ['result'],
    { buckets: CLAIM_SECONDS, most: 8 },
  ),
  sandpool_claim_step_seconds: histogram(
    'How long each step of a claim took: find (the pool and an idle instance), wait (for ' +
      'one, in line), admit (its turn and quota), write (the conditional update of the ' +
      'record), files (those that the claim brings).',
    ['step'],
    { buckets: CLAIM_SECONDS, most: 5 },
  ),
  sandpool_claims_waiting: gauge('Claims that wait for an instance on this replica.', []),

  sandpool_pools: gauge('Pools by phase.', ['phase'], 8),
  sandpool_pools_without_idle: gauge('Pools that ask for replicas and have none idle.', []),
  sandpool_instances: gauge('Instances of all pools by state.', ['state'], 8),
  sandpool_pool_instances: gauge(
    'Instances of a pool by state. The 50 pools with the most replicas; all others ' +
      'together as "(others)".',
    ['pool_namespace', 'pool', 'state'],
    160,
  ),
  sandpool_pool_replicas: gauge(
    'Replicas that a pool asks for; the same pools.',
    ['pool_namespace', 'pool'],
    60,
  ),
  sandpool_start_seconds: histogram(
    'From the order of an instance until it was ready to claim.',
    [],
    { buckets: START_SECONDS },
  ),
  sandpool_start_failures_total: counterOf(
    'Starts that failed: refused (by what starts it), died (before it was ready), ' +
      'timeout. Not counted: deferred for want of a place.',
    ['cause'],
    { known: ['refused', 'died', 'timeout'], most: 4 },
  ),
  sandpool_starts_deferred_total: counter(
    'Starts that were put off for want of a place, which is not their fault.',
    [],
  ),

  sandpool_transitions_total: counter(
    'Moves of state machines into a state.',
    ['kind', 'state'],
    60,
  ),
  sandpool_actors: gauge('State machines that this replica hosts.', ['kind'], 5),
  sandpool_actors_rebuilt_total: counter(
    'State machines that threw and were made again. Always a fault of Sandpool.',
    [],
  ),
  sandpool_actors_broken: gauge(
    'State machines that threw five times in a row and are left alone, with the sandbox, ' +
      'pool, member, group or approval that they stand for.',
    ['kind'],
    5,
  ),
  sandpool_deadline_late_seconds: histogram(
    'How much later than its moment a deadline of a state machine was handed out.',
    [],
    { buckets: LATE_SECONDS },
  ),
  sandpool_outbox_intents: gauge(
    'Intents of state machines that are being carried out.',
    ['host'],
    4,
  ),
  sandpool_outbox_oldest_seconds: gauge('For how long the oldest of them has been.', ['host'], 4),
  sandpool_intents_dropped_total: counter(
    'Intents of a leader that were not begun because its lease was over.',
    ['host'],
    4,
  ),
  sandpool_fenced_writes_total: counter(
    'Writes of a leader that were not made because its lease was over when they were due.',
    [],
  ),
  sandpool_conflicts_total: counter(
    'Conditional writes that were refused because the record had moved.',
    ['operation'],
    12,
  ),
  sandpool_api_key_seconds_left: gauge(
    'Until the next API key ends of those that were made for four weeks or more, by role.',
    ['role'],
    2,
  ),
  sandpool_certificate_seconds_left: gauge(
    'Until the certificate of the REST API ends; below 0: it has.',
    [],
  ),
  sandpool_disk_free_bytes: gauge('Room on the disk of the data folder, on one machine.', []),
  sandpool_disk_bytes: gauge('Size of the disk of the data folder, on one machine.', []),
  sandpool_shards_led: gauge('Shards that this replica leads; 16 over all replicas.', []),

  sandpool_http_requests_total: {
    ...counter(
      'Requests by the template of their route and their status; route "none" is a path ' +
        'that there is not. What counts as other keeps its status.',
      ['method', 'route', 'status'],
      300,
    ),
    stays: 'status',
  },
  sandpool_http_seconds: histogram(
    'How long requests took, by the template of their route. Streams count until their ' +
      'answer has begun.',
    ['method', 'route'],
    { buckets: REQUEST_SECONDS, most: 90 },
  ),
  sandpool_http_turned_away_total: counter(
    'Requests that were answered with 503 before anything was spent on them.',
    [],
  ),

  sandpool_costly_waiting: gauge(
    'Requests that wait for their turn of the event loop, tenants in turn, and previews.',
    [],
  ),
  sandpool_costly_refused_total: counter(
    'Requests that were answered with 429 because too many of their tenant waited already.',
    [],
  ),
  sandpool_costly_seconds_total: counter(
    'For how long requests kept the event loop busy: pieces of 5 ms and more.',
    [],
  ),

  sandpool_answer_bytes: gauge(
    'Bytes of memory that answers under way take, as they are on the wire: from what a ' +
      'command has printed until its client has the answer.',
    [],
  ),
  sandpool_answer_bytes_most: gauge('What they may take at most, by answers.memoryPercent.', []),
  sandpool_answers_refused_total: counterOf(
    'Requests refused, and commands ended, because their answer did not fit: share (429, ' +
      'a tenant had what it may have), all (503, all tenants together).',
    ['bound'],
    { known: ['share', 'all'], most: 2 },
  ),

  sandpool_driver_seconds: histogram('How long calls of what runs sandboxes took.', ['operation'], {
    buckets: CALL_SECONDS,
    most: 14,
  }),
  sandpool_driver_calls_total: counter(
    'Calls of what runs sandboxes by how they ended: done, conflict, unknown, fenced, ' +
      'deferred, failed.',
    ['operation', 'outcome'],
    60,
  ),
  sandpool_store_seconds: histogram(
    'Calls of the store: statements of the database, scripts of Redis, requests to the ' +
      'API server by kind of object.',
    ['store', 'operation'],
    { buckets: CALL_SECONDS, most: 72 },
  ),
  sandpool_store_failures_total: counter(
    'Calls of the store without a good answer, refusals of the API server (409, 404) not counted.',
    ['store', 'operation'],
    72,
  ),
  sandpool_mirror_silence_seconds: gauge(
    'Since when nothing was heard of what a mirror follows.',
    ['mirror'],
    16,
  ),
  sandpool_mirror_restarts_total: counter(
    'Watches of a mirror that ended otherwise than by their time.',
    ['mirror'],
    16,
  ),

  sandpool_history_forgotten_early_total: counter(
    'Finished sandboxes that were forgotten before history.retention was over, since ' +
      'there were too many bytes of them, or Redis ran short of memory.',
    [],
  ),

  sandpool_audit_lines_total: counter(
    'Lines of the audit: written; lost (too many waited while its file could not be ' +
      'written); missing (the files lacked them when the daemon started).',
    ['outcome'],
    3,
  ),
  sandpool_audit_waiting_lines: gauge('Lines of the audit that are not in its file yet.', []),
  sandpool_audit_unwritable_seconds: gauge(
    'For how long the audit could not be written; 0: it can.',
    [],
  ),

  sandpool_approvals_pending: gauge(
    'Requests that wait for a person, by how long: under a minute, under five, longer.',
    ['age'],
    3,
  ),
  sandpool_approvals_oldest_pending_seconds: gauge(
    'For how long the oldest request has waited for a person; 0: none waits.',
    [],
  ),
  sandpool_approvals: gauge('Approvals that can be read, by status.', ['status'], 5),
  sandpool_approvals_held_requests: gauge('Requests that hold the line for a decision.', []),
  sandpool_webhook_messages_total: counterOf(
    'Messages about approvals to webhooks: delivered; retried (an attempt failed, and another ' +
      'follows); given-up (a dead letter).',
    ['outcome'],
    { known: ['delivered', 'retried', 'given-up'], most: 3 },
  ),
  sandpool_webhook_messages_waiting: gauge('Messages to webhooks that are not taken yet.', []),

  sandpool_autoscaling_decisions_total: counter(
    'Decisions of autoscaling groups that were carried out, by what caused them and ' +
      'whether the group grew or shrank; `none`: it could not grow.',
    ['cause', 'direction'],
    24,
  ),

  sandpool_cluster_connected: ofCluster(
    'Of a manager, by cluster that has joined: 1 where this replica has a link to it that takes ' +
      'requests, else 0.',
  ),
  sandpool_cluster_links: ofCluster(
    'Links of the cluster to this replica, of each of its replicas one; also those that are ' +
      'silent or about to end.',
  ),
  sandpool_cluster_heartbeat_age_seconds: ofCluster(
    'Since when this replica has heard nothing of the cluster; without a series: not since it ' +
      'started.',
  ),
  sandpool_cluster_latency_seconds: ofCluster(
    'How long a heartbeat took there and back over the fastest link to the cluster.',
  ),
  sandpool_cluster_requests_total: counter(
    'Requests of clients that this replica passed on to the cluster, or tried to, each attempt; ' +
      'not where a list left it out: answered (by the cluster, whatever it said), unavailable ' +
      '(503: no link, no answer, or the link carried as much as it may).',
    ['cluster_id', 'outcome'],
    2 * MOST_CLUSTERS,
  ),
  sandpool_links_refused_total: counter(
    'Links that a manager did not take in: not-joined (no cluster of this id and key, or its ' +
      'token is not good), unproved (it has not the key that it names), address (none of ' +
      'fleet.addresses), version, runs-twice (a copy of a daemon that is linked), not-opened ' +
      '(cut before it was open, or it could not be known whether it may).',
    ['reason'],
    6,
  ),
  sandpool_manager_links: gauge(
    'Of a worker, by address of fleet.managers: links of this replica to the manager that ' +
      'answers there, whichever address they were dialled at.',
    ['manager'],
    8,
  ),
  sandpool_manager_dials_failed_total: counter(
    'Dials at that address that came to no link, since managers were let in last.',
    ['manager'],
    8,
  ),
  sandpool_manager_cut_off: gauge(
    '1 where the cluster’s own admin has cut the manager off, else 0.',
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
