/** As deploy/grafana/sandpool.json. */

/** Expressions with legends. `all` stands for the variables' choice. */
interface Panel {
  readonly title: string;
  readonly about: string;
  readonly unit: 'short' | 's' | 'reqps' | 'ops' | 'percentunit' | 'bytes';
  readonly lines: readonly (readonly [expression: string, legend: string])[];
}

const quantiles = (name: string, by: string, filter = ''): Panel['lines'] => [
  [
    `histogram_quantile(0.5, sum by (${by}${by === '' ? '' : ', '}le) (rate(${name}_bucket{all${filter}}[$__rate_interval])))`,
    `p50${by === '' ? '' : ` {{${by}}}`}`,
  ],
  [
    `histogram_quantile(0.99, sum by (${by}${by === '' ? '' : ', '}le) (rate(${name}_bucket{all${filter}}[$__rate_interval])))`,
    `p99${by === '' ? '' : ` {{${by}}}`}`,
  ],
];
const rate = (name: string, by: string, filter = ''): readonly [string, string] => [
  `sum by (${by}) (rate(${name}{all${filter}}[$__rate_interval]))`,
  `{{${by}}}`,
];
/** For each replica. */
const mirrored = (name: string, by: string): readonly [string, string] => [
  `max by (${by}) (${name}{all})`,
  by
    .split(', ')
    .map((label) => `{{${label}}}`)
    .join(' '),
];

const ROWS: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Claims',
    [
      {
        title: 'Claims',
        about: 'By outcome.',
        unit: 'ops',
        lines: [rate('sandpool_claims_total', 'result')],
      },
      {
        title: 'Latency of claims',
        about: 'Successful claims, waiting included.',
        unit: 's',
        lines: quantiles('sandpool_claim_seconds', '', ', result="claimed"'),
      },
      {
        title: 'Steps of a claim',
        about: 'Duration of each step.',
        unit: 's',
        lines: quantiles('sandpool_claim_step_seconds', 'step'),
      },
      {
        title: 'Waiting claims',
        about: 'Claims that are waiting for an instance.',
        unit: 'short',
        lines: [['sum by (instance) (sandpool_claims_waiting{all})', '{{instance}}']],
      },
    ],
  ],
  [
    'Pools',
    [
      {
        title: 'Instances',
        about: 'All pools, by state.',
        unit: 'short',
        lines: [mirrored('sandpool_instances', 'state')],
      },
      {
        title: 'Idle instances',
        about: 'The pools with the most replicas.',
        unit: 'short',
        lines: [
          [
            'max by (pool_namespace, pool) (sandpool_pool_instances{all, state="idle"})',
            '{{pool_namespace}}/{{pool}}',
          ],
        ],
      },
      {
        title: 'Running and wanted',
        about: 'The pools with the most replicas.',
        unit: 'short',
        lines: [
          [
            'max by (pool_namespace, pool) (sandpool_pool_instances{all, state="running"})',
            'running {{pool_namespace}}/{{pool}}',
          ],
          [
            'max by (pool_namespace, pool) (sandpool_pool_replicas{all})',
            'replicas {{pool_namespace}}/{{pool}}',
          ],
        ],
      },
      {
        title: 'Pools by phase',
        about: 'Degraded and Failed pools cannot start instances.',
        unit: 'short',
        lines: [
          mirrored('sandpool_pools', 'phase'),
          ['max(sandpool_pools_without_idle{all})', 'without an idle instance'],
        ],
      },
      {
        title: 'Time to start',
        about: 'From the order until the instance can be claimed.',
        unit: 's',
        lines: quantiles('sandpool_start_seconds', ''),
      },
      {
        title: 'Failed starts',
        about: 'By cause, and deferred starts (no capacity).',
        unit: 'ops',
        lines: [
          rate('sandpool_start_failures_total', 'cause'),
          ['sum(rate(sandpool_starts_deferred_total{all}[$__rate_interval]))', 'deferred'],
        ],
      },
      {
        title: 'Decisions of autoscaling groups',
        about: 'By cause and direction.',
        unit: 'ops',
        lines: [
          [
            'sum by (cause, direction) (rate(sandpool_autoscaling_decisions_total{all}[$__rate_interval]))',
            '{{cause}} {{direction}}',
          ],
        ],
      },
    ],
  ],
  [
    'Requests',
    [
      {
        title: 'Requests',
        about: 'By status.',
        unit: 'reqps',
        lines: [rate('sandpool_http_requests_total', 'status')],
      },
      {
        title: 'Latency of requests',
        about: '99th percentile, for the routes with the most requests.',
        unit: 's',
        lines: [
          [
            'topk(10, histogram_quantile(0.99, sum by (method, route, le) (rate(sandpool_http_seconds_bucket{all}[$__rate_interval]))))',
            '{{method}} {{route}}',
          ],
        ],
      },
      {
        title: 'Turned away',
        about: 'Requests answered with 503 at once because of overload.',
        unit: 'reqps',
        lines: [rate('sandpool_http_turned_away_total', 'instance')],
      },
      {
        title: 'Costly requests',
        about: 'Waiting requests, and refused requests per second.',
        unit: 'short',
        lines: [
          ['sum by (instance) (sandpool_costly_waiting{all})', 'waiting {{instance}}'],
          [
            'sum by (instance) (rate(sandpool_costly_refused_total{all}[$__rate_interval]))',
            'refused {{instance}}',
          ],
        ],
      },
      {
        title: 'Event loop in costly requests',
        about: "Share of each replica's time.",
        unit: 'percentunit',
        lines: [rate('sandpool_costly_seconds_total', 'instance')],
      },
    ],
  ],
  [
    'Below',
    [
      {
        title: 'Latency of the store',
        about: 'SQLite, or Redis and the API server.',
        unit: 's',
        lines: quantiles('sandpool_store_seconds', 'store'),
      },
      {
        title: 'Failures of the store',
        about: 'Failed calls.',
        unit: 'ops',
        lines: [
          [
            'sum by (store, operation) (rate(sandpool_store_failures_total{all}[$__rate_interval]))',
            '{{store}} {{operation}}',
          ],
        ],
      },
      {
        title: 'Latency of the driver',
        about: '99th percentile of the calls that run sandboxes.',
        unit: 's',
        lines: [
          [
            'histogram_quantile(0.99, sum by (operation, le) (rate(sandpool_driver_seconds_bucket{all}[$__rate_interval])))',
            '{{operation}}',
          ],
        ],
      },
      {
        title: 'Conflicts, unknown and fenced writes',
        about: 'Another write was first, no response arrived, or the lease had ended.',
        unit: 'ops',
        lines: [
          [
            'sum by (operation) (rate(sandpool_conflicts_total{all}[$__rate_interval]))',
            'conflict {{operation}}',
          ],
          [
            'sum by (operation) (rate(sandpool_driver_calls_total{all, outcome="unknown"}[$__rate_interval]))',
            'unknown {{operation}}',
          ],
          ['sum(rate(sandpool_fenced_writes_total{all}[$__rate_interval]))', 'fenced'],
          ['sum(rate(sandpool_intents_dropped_total{all}[$__rate_interval]))', 'not begun'],
        ],
      },
      {
        title: 'History forgotten early',
        about:
          'Deleted before history.retention because the history was too large or Redis ran short ' +
          'of memory.',
        unit: 'ops',
        lines: [
          ['sum(rate(sandpool_history_forgotten_early_total{all}[$__rate_interval]))', 'forgotten'],
        ],
      },
      {
        title: 'Silence of mirrors',
        about: 'Time since the mirror last received anything.',
        unit: 's',
        lines: [
          [
            'max by (instance, mirror) (sandpool_mirror_silence_seconds{all})',
            '{{instance}} {{mirror}}',
          ],
        ],
      },
      {
        title: 'Restarts of mirrors',
        about: 'Watches that ended early.',
        unit: 'ops',
        lines: [rate('sandpool_mirror_restarts_total', 'mirror')],
      },
    ],
  ],
  [
    'Fleet',
    [
      {
        title: 'Clusters',
        about: 'On a manager: connected clusters, and clusters to which a replica has no link.',
        unit: 'short',
        lines: [
          [
            '1 - min by (cluster_id) (sandpool_cluster_connected{all}) > 0',
            'not connected {{cluster_id}}',
          ],
          ['sum(min by (cluster_id) (sandpool_cluster_connected{all}))', 'connected'],
        ],
      },
      {
        title: 'Heartbeats of clusters',
        about: 'Round-trip time, and time since the last heartbeat.',
        unit: 's',
        lines: [
          [
            'max by (cluster_id) (sandpool_cluster_heartbeat_age_seconds{all}) > 15',
            'silent {{cluster_id}}',
          ],
          [
            'topk(10, max by (cluster_id) (sandpool_cluster_latency_seconds{all}))',
            '{{cluster_id}}',
          ],
        ],
      },
      {
        title: 'Forwarded requests',
        about: 'To the busiest clusters, and requests that got no response.',
        unit: 'reqps',
        lines: [
          [
            'topk(10, sum by (cluster_id) (rate(sandpool_cluster_requests_total{all, outcome="answered"}[$__rate_interval])))',
            '{{cluster_id}}',
          ],
          [
            'sum by (cluster_id) (rate(sandpool_cluster_requests_total{all, outcome="unavailable"}[$__rate_interval])) > 0',
            'unavailable {{cluster_id}}',
          ],
        ],
      },
      {
        title: 'Links of clusters',
        about: 'The ten clusters with the fewest links, over all replicas of the manager.',
        unit: 'short',
        lines: [
          ['bottomk(10, sum by (cluster_id) (sandpool_cluster_links{all}))', '{{cluster_id}}'],
        ],
      },
      {
        title: 'Links refused',
        about: 'Refused by a manager, by reason.',
        unit: 'ops',
        lines: [rate('sandpool_links_refused_total', 'reason')],
      },
      {
        title: 'Links to managers',
        about: 'On a worker: failed dials, and managers that its admin cut off.',
        unit: 'short',
        lines: [
          ['sandpool_manager_links{all}', '{{instance}} {{manager}}'],
          [
            'increase(sandpool_manager_dials_failed_total{all}[$__rate_interval])',
            'failed {{instance}} {{manager}}',
          ],
          ['sandpool_manager_cut_off{all} == 1', 'cut off {{instance}} {{manager}}'],
        ],
      },
    ],
  ],
  [
    'Replicas',
    [
      {
        title: 'Ready',
        about: 'GET /readyz, and its warnings.',
        unit: 'short',
        lines: [
          ['sandpool_ready{all}', 'ready {{instance}}'],
          ['sandpool_readiness_warnings{all}', 'warnings {{instance}}'],
        ],
      },
      {
        title: 'Shards led',
        about: '16 in total over all replicas.',
        unit: 'short',
        lines: [['sandpool_shards_led{all}', '{{instance}}']],
      },
      {
        title: 'Lateness',
        about: 'Lag of the event loop, and delay of deadlines.',
        unit: 's',
        lines: [
          ['nodejs_eventloop_lag_p99_seconds{all}', 'loop {{instance}}'],
          [
            'histogram_quantile(0.99, sum by (instance, le) (rate(sandpool_deadline_late_seconds_bucket{all}[$__rate_interval])))',
            'deadlines {{instance}}',
          ],
        ],
      },
      {
        title: 'Outbox',
        about: 'Intents in progress, and the age of the oldest.',
        unit: 'short',
        lines: [
          ['sum by (instance, host) (sandpool_outbox_intents{all})', '{{instance}} {{host}}'],
          [
            'max by (instance, host) (sandpool_outbox_oldest_seconds{all})',
            'oldest (s) {{instance}} {{host}}',
          ],
        ],
      },
      {
        title: 'State machines',
        about: 'Hosted, and transitions per second.',
        unit: 'short',
        lines: [
          ['sum by (kind) (sandpool_actors{all})', '{{kind}}'],
          rate('sandpool_transitions_total', 'state'),
        ],
      },
      {
        title: 'State machines that threw',
        about: 'Always a bug in Sandpool.',
        unit: 'short',
        lines: [
          ['increase(sandpool_actors_rebuilt_total{all}[$__range])', '{{instance}}'],
          [
            'sum by (kind, instance) (sandpool_actors_broken{all})',
            'stopped: {{kind}} {{instance}}',
          ],
        ],
      },
      {
        title: 'Approvals',
        about: 'Requests that are waiting for a person, by age, and other approvals by status.',
        unit: 'short',
        lines: [
          ['max by (age) (sandpool_approvals_pending{all})', 'pending {{age}}'],
          ['max by (status) (sandpool_approvals{all})', '{{status}}'],
          ['max(sandpool_approvals_oldest_pending_seconds{all})', 'oldest (s)'],
          ['sum(sandpool_approvals_held_requests{all})', 'connections kept open'],
          ['sum(sandpool_webhook_messages_waiting{all})', 'to webhooks'],
          [
            'sum by (outcome) (increase(sandpool_webhook_messages_total{all}[$__range]))',
            'to webhooks: {{outcome}}',
          ],
        ],
      },
      {
        title: 'Audit',
        about:
          'Waiting, lost and missing lines, and the time for which the file could not be written.',
        unit: 'short',
        lines: [
          ['sum by (instance) (sandpool_audit_waiting_lines{all})', 'waiting {{instance}}'],
          [
            'increase(sandpool_audit_lines_total{all, outcome!="written"}[$__range])',
            '{{outcome}} {{instance}}',
          ],
          ['sandpool_audit_unwritable_seconds{all}', 'unwritable (s) {{instance}}'],
        ],
      },
      {
        title: 'Processor',
        about: 'Cores in use.',
        unit: 'short',
        lines: [['rate(process_cpu_seconds_total{all}[$__rate_interval])', '{{instance}}']],
      },
      {
        title: 'Memory',
        about: 'The process and its heap.',
        unit: 'bytes',
        lines: [
          ['process_resident_memory_bytes{all}', 'process {{instance}}'],
          ['nodejs_heap_size_used_bytes{all}', 'heap {{instance}}'],
        ],
      },
      {
        title: 'Memory for answers',
        about: 'Responses in progress, their limit, and how many did not fit.',
        unit: 'bytes',
        lines: [
          ['sandpool_answer_bytes{all}', 'taken {{instance}}'],
          ['sandpool_answer_bytes_most{all}', 'limit {{instance}}'],
          [
            'increase(sandpool_answers_refused_total{all}[$__range])',
            'refused (number) {{bound}} {{instance}}',
          ],
        ],
      },
      {
        title: 'Versions',
        about: 'Versions differ only during an upgrade.',
        unit: 'short',
        lines: [
          [
            'count by (version, commit, assembly) (sandpool_build_info{all})',
            '{{version}} {{commit}} {{assembly}}',
          ],
        ],
      },
    ],
  ],
];

const SOURCE = { type: 'prometheus', uid: '${source}' };
const [COLUMNS, HEIGHT] = [3, 8];

export const dashboard = (): string => {
  let [id, y] = [0, 0];
  const panels = ROWS.flatMap(([title, row]) => {
    const header = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    };
    const top = y + 1;
    y = top + Math.ceil(row.length / COLUMNS) * HEIGHT;
    return [
      header,
      ...row.map((panel, at) =>
        panelOf(panel, ++id, {
          x: (at % COLUMNS) * (24 / COLUMNS),
          y: top + Math.floor(at / COLUMNS) * HEIGHT,
          w: 24 / COLUMNS,
          h: HEIGHT,
        }),
      ),
    ];
  });
  const variable = {
    type: 'query',
    datasource: SOURCE,
    refresh: 2,
    sort: 1,
    includeAll: true,
    multi: true,
    current: { text: 'All', value: '$__all' },
  };
  return `${JSON.stringify(
    {
      title: 'Sandpool',
      uid: 'sandpool',
      schemaVersion: 39,
      tags: ['sandpool'],
      editable: true,
      refresh: '30s',
      time: { from: 'now-3h', to: 'now' },
      timezone: '',
      annotations: { list: [] },
      templating: {
        list: [
          {
            type: 'datasource',
            name: 'source',
            label: 'Prometheus',
            query: 'prometheus',
            current: {},
          },
          {
            ...variable,
            name: 'job',
            label: 'Installation',
            query: 'label_values(sandpool_build_info, job)',
          },
          {
            ...variable,
            name: 'instance',
            label: 'Replica',
            query: 'label_values(sandpool_build_info{job=~"$job"}, instance)',
          },
        ],
      },
      panels,
    },
    undefined,
    1,
  )}\n`;
};

const panelOf = ({ title, about, unit, lines }: Panel, id: number, gridPos: object) => ({
  id,
  type: 'timeseries',
  title,
  description: about,
  datasource: SOURCE,
  gridPos,
  fieldConfig: {
    defaults: { unit, min: 0, custom: { fillOpacity: 8, showPoints: 'never' } },
    overrides: [],
  },
  options: {
    legend: { displayMode: 'list', placement: 'bottom' },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  targets: lines.map(([expression, legend], at) => ({
    refId: String.fromCharCode(65 + at),
    datasource: SOURCE,
    expr: expression.replaceAll(/\{all(?=[,}])/g, '{job=~"$job", instance=~"$instance"'),
    legendFormat: legend,
  })),
});
