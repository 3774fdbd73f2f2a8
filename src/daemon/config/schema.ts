import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { compatibleApiSettings } from './compatible-api-settings.ts';
import { HIGHEST_LIMIT } from '../../model/pools/quota.ts';
import {
  choice,
  duration,
  label,
  listener,
  listenerOrNone,
  path,
  sizeQuota,
  volumeDirectory,
  whole,
  managerUrl,
} from './fields.ts';
import { kubernetesSettings } from './kubernetes-section.ts';
import {
  approvalsSettings,
  tracingSettings,
  imagesSettings,
  keysSettings,
  redisSettings,
  terminalSettings,
  auditSettings,
  consoleSettings,
  openIdSettings,
  historySettings,
} from './sections.ts';

const fleetSettings = z.strictObject({
  managers: z
    .array(managerUrl, 'must be a list of URLs')
    .max(8)
    .meta({
      description:
        'Managers that may forward requests to this cluster, each wss://HOST:PORT. This ' +
        'cluster opens the links.',
    }),
  addresses: z
    .array(managerUrl, 'must be a list of URLs')
    .max(8)
    .meta({
      description:
        'Addresses of this manager that workers may dial, each wss://HOST:PORT. Links to other ' +
        'addresses are refused. If the list is empty, all addresses are accepted.',
    }),
  promotedKeysAlone: duration(
    5 * 60_000,
    30 * 24 * 60 * 60_000,
    "How long this cluster accepts a manager's promoted keys without contact with the manager.",
  ),
  joinTokenFile: path(
    'File with the token from sandpool clusters join-token, read at the start. Needed ' +
      'until the cluster has joined; on Kubernetes always.',
  ).optional(),
});

/**
 * Only config/default.yaml holds defaults. Descriptions are repeated there and in `serve --help`.
 * Durations are text here and milliseconds after parsing.
 */

export const ConfigSchema = z
  .strictObject({
    assembly: choice(
      ['embedded', 'kubernetes'],
      'embedded runs sandboxes on this machine; kubernetes runs them as Pods of a cluster, ' +
        'with any number of replicas.',
    ),
    replica: label(
      'Name of this replica in logs; a random suffix is added. Unset: the host name.',
    ).optional(),
    listen: listener('Address and port of the REST API.'),
    metrics: z.strictObject({
      listen: listenerOrNone(
        'Address and port of GET /metrics, open to anyone who can reach it; none turns metrics ' +
          'off.',
      ),
    }),
    compatibleApi: compatibleApiSettings,
    tracing: tracingSettings,
    dataDir: path("Folder of the daemon's data: database, keys, sandboxes."),
    secretsDir: path(
      'Folder with the files pepper and admin.key, and in a fleet fleet.key; the same for ' +
        'every replica. Read at the start, never written.',
    ).optional(),
    shutdownDelay: duration(
      0,
      60_000,
      'How long a stopping daemon reports that it is not ready before it stops accepting requests.',
    ),
    templatesDir: path('Folder of the sandbox templates (*.json), read at every start.'),
    instanceTypes: z.strictObject({
      provider: choice(
        ['file', 'none'],
        'Source of instance types: file reads instanceTypes.file; none offers no instance types.',
      ),
      file: path('File (YAML) of the instance types that pools may name; read at the start.'),
    }),
    volumes: z.strictObject({
      provider: choice(
        ['auto', 'none'],
        'auto offers tenants the existing volumes: directories on one machine, bound claims on ' +
          'Kubernetes; none offers no volumes.',
      ),
      directories: z
        .array(volumeDirectory, 'must be a list of NAMESPACE/CLAIM=/PATH')
        .max(1_000)
        .refine(
          (given) =>
            new Set(given.map(({ namespace, claimName }) => `${namespace}/${claimName}`)).size ===
            given.length,
          'must not name a claim twice',
        )
        .meta({
          description:
            'Directories that sandboxes of a namespace may mount as volumes, as ' +
            'NAMESPACE/CLAIM=/PATH; only on one machine.',
        }),
    }),
    logLevel: choice(
      ['auto', 'trace', 'debug', 'info', 'warn', 'error'],
      'Lowest level that is logged; auto is warn on a terminal, else info.',
    ),
    clusterId: label('Name of this cluster in paths and in a fleet.'),
    role: choice(
      ['worker', 'manager'],
      'A worker serves its own sandboxes, directly and through the managers that it names. A ' +
        'manager also serves other clusters.',
    ),
    fleet: fleetSettings,
    namespacePattern: z
      .string('must be text')
      .refine(
        (value) => value.includes('{team}') && isDnsLabel(value.replaceAll('{team}', 'team')),
        'must contain {team}, and be a DNS-1123 label once {team} is filled in',
      )
      .meta({ description: 'Namespace of a team.' }),
    isolation: choice(
      ['auto', 'none'],
      'auto isolates sandboxes with bubblewrap and refuses to start without it; none runs ' +
        'processes without isolation, for trials only.',
    ),
    uidRange: z.strictObject({
      first: whole(1_000, 4_294_000_000, 'First host uid for sandboxes, if the daemon is root.'),
      count: whole(
        1,
        1_000_000,
        'Number of host uids, and so the maximum number of live sandboxes.',
      ),
    }),
    images: imagesSettings,
    limits: z.strictObject({
      inlineTemplates: choice(
        ['everyone', 'nobody'],
        'Whether everyone or nobody may create a pool with an inline template. With nobody, ' +
          'pools must name a stored template.',
      ),
      terminalsOfTenant: whole(
        1,
        4_096,
        'Maximum number of open terminals of a tenant on one replica.',
      ),
    }),
    pidsMax: whole(8, 32_768, 'Maximum number of processes and threads in one sandbox.'),
    parallelStarts: whole(1, 64, 'Maximum number of sandboxes that start at the same time.'),
    refill: z.strictObject({
      perSecond: whole(1, 10_000, 'Launches per second of one pool.'),
      burst: whole(1, 10_000, 'Launches of one pool allowed at once after a quiet time.'),
    }),
    pool: z.strictObject({
      replicaSemantics: choice(
        ['total', 'idle'],
        'Instances that replicas counts: total counts idle, starting and running ones; idle ' +
          'counts unclaimed ones.',
      ),
    }),
    breaker: z
      .strictObject({
        failures: whole(1, 100, 'Consecutive start failures after which a pool pauses its starts.'),
        firstPauseSeconds: whole(1, 3_600, 'The first pause; each further pause is twice as long.'),
        maxPauseSeconds: whole(
          1,
          86_400,
          'The longest pause. After refused launches it is at most 8 s.',
        ),
      })
      .refine((group) => group.firstPauseSeconds <= group.maxPauseSeconds, {
        path: ['firstPauseSeconds'],
        error: 'must not exceed breaker.maxPauseSeconds',
      }),
    quotas: z.strictObject({
      sandboxes: whole(
        0,
        HIGHEST_LIMIT.sandboxes,
        'Maximum number of running sandboxes of one user.',
      ),
      pools: whole(0, HIGHEST_LIMIT.pools, 'Maximum number of pools of one user.'),
      replicas: whole(
        0,
        HIGHEST_LIMIT.replicas,
        'Maximum number of replicas of one user, over all pools.',
      ),
      cpu: sizeQuota(
        'cpu',
        "Maximum number of cores for all instances that one user's pools ask for, such as " +
          '"64". Unset: no limit.',
      ).optional(),
      memory: sizeQuota(
        'memory',
        'Maximum memory for these instances, such as 256Gi. Unset: no limit.',
      ).optional(),
    }),
    keys: keysSettings,
    approvals: approvalsSettings,
    history: historySettings,
    logs: z.strictObject({
      fileBytes: whole(
        65_536,
        1_073_741_824,
        'Maximum size of a log file of a sandbox, in bytes; each sandbox has two.',
      ),
      totalBytes: whole(
        1_048_576,
        1_125_899_906_842_624,
        'Maximum size of all log files together, in bytes. Beyond it, the oldest files of the ' +
          'user with the most logs are deleted.',
      ),
    }),
    answers: z.strictObject({
      memoryPercent: whole(
        1,
        400,
        "Maximum memory of responses in progress, in percent of V8's heap limit, which " +
          '--max-old-space-size sets.',
      ),
      tenantPercent: whole(
        1,
        100,
        "One tenant's share of the memory that the other tenants leave free, in percent.",
      ),
    }),
    keptAnswers: z.strictObject({
      totalBytes: whole(
        1_048_576,
        1_125_899_906_842_624,
        'Maximum size of the responses stored for requests with an Idempotency-Key, in bytes. ' +
          'Beyond it, the oldest responses of the user with the most are deleted.',
      ),
      tenantBytes: whole(
        262_144,
        1_125_899_906_842_624,
        "Maximum size for one user. Beyond it, the user's own oldest responses are deleted.",
      ),
    }),
    audit: auditSettings,
    tls: z
      .strictObject({
        certFile: path(
          'Certificate chain (PEM) of the REST API. With it and tls.keyFile, the API speaks only ' +
            'HTTPS.',
        ).optional(),
        keyFile: path('Private key (PEM) of the certificate.').optional(),
      })
      .refine((group) => (group.certFile === undefined) === (group.keyFile === undefined), {
        path: ['keyFile'],
        error: 'must be set together with tls.certFile',
      }),
    trustedProxies: z
      .array(
        z.union(
          [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
          'must be an IP address or a CIDR range',
        ),
        'must be a list of IP addresses and CIDR ranges',
      )
      .meta({
        description:
          'Proxies (addresses, CIDR ranges) whose X-Forwarded-For, X-Forwarded-Proto and ' +
          'Forwarded headers are trusted.',
      }),
    connections: z.strictObject({
      most: whole(10, 1_000_000, 'Maximum number of open connections.'),
      mostPerAddress: whole(
        1,
        1_000_000,
        'Maximum number of open connections from one address (IPv6: one /64). Trusted proxies ' +
          'are not counted.',
      ),
    }),
    deprecation: z.strictObject({
      sunset: z.iso
        .datetime('must be a timestamp in UTC such as 2030-01-31T00:00:00Z')
        .optional()
        .meta({
          description:
            'Time at which deprecated operations will be removed, sent in their Sunset header.',
        }),
    }),
    console: consoleSettings,
    openId: openIdSettings,
    terminal: terminalSettings,
    kubernetes: kubernetesSettings,
    redis: redisSettings,
    endpoints: z.strictObject({
      mode: choice(
        ['gateway', 'direct'],
        'gateway shows URLs under the daemon; direct shows a loopback address if the sandbox ' +
          "shares the host's network.",
      ),
    }),
    defaultPool: z.strictObject({
      name: label('Pool for the tenant key, created by the first start, and its env.'),
      replicas: whole(0, 10_000, 'Initial and minimum number of replicas.'),
      maxReplicas: whole(
        0,
        10_000,
        'Maximum number of replicas. If it is not above replicas, the pool has no env and ' +
          'keeps its size.',
      ),
      template: label('Its template.'),
    }),
    interpreterPool: z.strictObject({
      maxReplicas: whole(
        0,
        10_000,
        'Maximum number of replicas of the pool code-interpreter-v1, which the first start ' +
          'creates. The pool has no replicas while nobody uses it. 0: the pool is not created.',
      ),
    }),
  })
  .superRefine(({ assembly, secretsDir, redis, role, fleet }, context) => {
    if (role === 'manager' && fleet.managers.length > 0)
      context.addIssue({
        code: 'custom',
        path: ['fleet', 'managers'],
        message:
          'must be empty if role is manager: a manager cannot be a worker of another manager',
      });
    if (assembly === 'embedded') return;
    const needed = `must be set if assembly is ${assembly}`;
    if (secretsDir === undefined)
      context.addIssue({ code: 'custom', path: ['secretsDir'], message: needed });
    if (redis.urls.length === 0)
      context.addIssue({ code: 'custom', path: ['redis', 'urls'], message: needed });
  });

/** Durations are in ms; `dataDir` and `templatesDir` are absolute. */
export type Config = z.infer<typeof ConfigSchema>;
