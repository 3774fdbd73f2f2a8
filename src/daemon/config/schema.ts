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
        'Managers that this cluster lets pass requests on to it, each wss://HOST:PORT; it opens ' +
        'the links itself.',
    }),
  addresses: z
    .array(managerUrl, 'must be a list of URLs')
    .max(8)
    .meta({
      description:
        'Addresses by which workers reach this manager, each wss://HOST:PORT: one that dialled ' +
        'another address is refused. Empty: any.',
    }),
  promotedKeysAlone: duration(
    5 * 60_000,
    30 * 24 * 60 * 60_000,
    'How long promoted keys of a manager are good at this cluster while that manager is not heard.',
  ),
  joinTokenFile: path(
    'File with the token of sandpool clusters join-token; read at the start, and needed until ' +
      'the cluster has joined; on Kubernetes always.',
  ).optional(),
});

/**
 * Every setting: its form, bounds and one sentence about it, which config/default.yaml and `serve
 * --help` repeat word for word. Defaults stand in config/default.yaml alone. Durations are text
 * here and whole milliseconds once parsed.
 */

export const ConfigSchema = z
  .strictObject({
    assembly: choice(
      ['embedded', 'kubernetes'],
      'embedded runs sandboxes on this machine; kubernetes as Pods of a cluster, with any ' +
        'number of replicas.',
    ),
    replica: label(
      'Name of this replica in logs; a random ending is added. Unset: the host name.',
    ).optional(),
    listen: listener('Address and port that the REST API listens on.'),
    metrics: z.strictObject({
      listen: listenerOrNone(
        'Address and port that GET /metrics is answered on, to whoever can reach it; none ' +
          'measures nothing.',
      ),
    }),
    compatibleApi: compatibleApiSettings,
    tracing: tracingSettings,
    dataDir: path('Folder of all that the daemon keeps: database, keys, sandboxes.'),
    secretsDir: path(
      'Folder with the files pepper and admin.key, and in a fleet fleet.key, the same for ' +
        'every replica; read at the start, never written.',
    ).optional(),
    shutdownDelay: duration(
      0,
      60_000,
      'How long a daemon that is told to stop says that it is not ready before it takes ' +
        'no more requests.',
    ),
    templatesDir: path('Folder of the sandbox templates (*.json) that are read at every start.'),
    instanceTypes: z.strictObject({
      provider: choice(
        ['file', 'none'],
        'Where instance types come from: file reads instanceTypes.file; none has no ' +
          'instance types.',
      ),
      file: path('File (YAML) of the instance types that pools may name; read at the start.'),
    }),
    volumes: z.strictObject({
      provider: choice(
        ['auto', 'none'],
        'auto offers tenants the volumes there are: directories on one machine, bound ' +
          'claims on Kubernetes; none offers no volumes.',
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
            'NAMESPACE/CLAIM=/PATH; on one machine alone.',
        }),
    }),
    logLevel: choice(
      ['auto', 'trace', 'debug', 'info', 'warn', 'error'],
      'Least level that is logged; auto is warn on a terminal, else info.',
    ),
    clusterId: label('Name of this cluster in paths and in a fleet.'),
    role: choice(
      ['worker', 'manager'],
      'A worker answers for itself, and for the managers that it names, if any; a manager for ' +
        'other clusters too.',
    ),
    fleet: fleetSettings,
    namespacePattern: z
      .string('must be text')
      .refine(
        (value) => value.includes('{team}') && isDnsLabel(value.replaceAll('{team}', 'team')),
        'must hold {team}, and be a DNS-1123 label once it is filled in',
      )
      .meta({ description: 'Namespace of a team.' }),
    isolation: choice(
      ['auto', 'none'],
      'auto isolates by bubblewrap and refuses to start without it; none runs bare ' +
        'processes, for trials only.',
    ),
    uidRange: z.strictObject({
      first: whole(1_000, 4_294_000_000, 'First host uid for sandboxes, when the daemon is root.'),
      count: whole(1, 1_000_000, 'How many host uids; at most this many sandboxes live at once.'),
    }),
    images: imagesSettings,
    limits: z.strictObject({
      inlineTemplates: choice(
        ['everyone', 'nobody'],
        'Who may give a pool a template of its own: everyone, or nobody, so that pools ' +
          'name a stored one.',
      ),
      terminalsOfTenant: whole(
        1,
        4_096,
        'Terminals that a tenant may have open at one time, on one replica.',
      ),
    }),
    pidsMax: whole(8, 32_768, 'Processes and threads that one sandbox may have.'),
    parallelStarts: whole(1, 64, 'Sandboxes that are started at the same time.'),
    refill: z.strictObject({
      perSecond: whole(1, 10_000, 'Launches per second of one pool.'),
      burst: whole(1, 10_000, 'Launches at once after a quiet time.'),
    }),
    pool: z.strictObject({
      replicaSemantics: choice(
        ['total', 'idle'],
        'What replicas counts: total is idle, starting and running; idle is the unclaimed ones.',
      ),
    }),
    breaker: z
      .strictObject({
        failures: whole(
          1,
          100,
          'Start failures in a row after which a pool stops starting for a while.',
        ),
        firstPauseSeconds: whole(1, 3_600, 'The first pause; each further one is twice as long.'),
        maxPauseSeconds: whole(
          1,
          86_400,
          'The longest pause. After launches that were refused it is at most 8 s.',
        ),
      })
      .refine((group) => group.firstPauseSeconds <= group.maxPauseSeconds, {
        path: ['firstPauseSeconds'],
        error: 'must not exceed breaker.maxPauseSeconds',
      }),
    quotas: z.strictObject({
      sandboxes: whole(0, HIGHEST_LIMIT.sandboxes, 'Running sandboxes that one user may have.'),
      pools: whole(0, HIGHEST_LIMIT.pools, 'Pools that one user may have.'),
      replicas: whole(
        0,
        HIGHEST_LIMIT.replicas,
        'Replicas that one user may ask for, over all pools.',
      ),
      cpu: sizeQuota(
        'cpu',
        'Cores that all instances which the pools of one user ask for may have, such as ' +
          '"64". Unset: any number.',
      ).optional(),
      memory: sizeQuota(
        'memory',
        'Memory of the same, such as 256Gi. Unset: any amount.',
      ).optional(),
    }),
    keys: keysSettings,
    approvals: approvalsSettings,
    history: historySettings,
    logs: z.strictObject({
      fileBytes: whole(
        65_536,
        1_073_741_824,
        'Bytes of one file of what a sandbox prints; two are kept of each sandbox.',
      ),
      totalBytes: whole(
        1_048_576,
        1_125_899_906_842_624,
        'Bytes of all these files together; the oldest of whoever has most go first.',
      ),
    }),
    answers: z.strictObject({
      memoryPercent: whole(
        1,
        400,
        "Memory that answers under way may take, in percent of the limit of V8's heap, " +
          'which --max-old-space-size sets.',
      ),
      tenantPercent: whole(
        1,
        100,
        'What one tenant may have of what the others leave of it, in percent.',
      ),
    }),
    keptAnswers: z.strictObject({
      totalBytes: whole(
        1_048_576,
        1_125_899_906_842_624,
        'Bytes of the answers that are kept for requests with an Idempotency-Key; the ' +
          'oldest of the user with most go first.',
      ),
      tenantBytes: whole(
        262_144,
        1_125_899_906_842_624,
        "What one user may have of them; beyond it the user's own oldest go.",
      ),
    }),
    audit: auditSettings,
    tls: z
      .strictObject({
        certFile: path(
          'Certificate chain (PEM) of the REST API; with it and tls.keyFile it speaks HTTPS alone.',
        ).optional(),
        keyFile: path('Private key (PEM) of the certificate.').optional(),
      })
      .refine((group) => (group.certFile === undefined) === (group.keyFile === undefined), {
        path: ['keyFile'],
        error: 'must be set beside tls.certFile, and only then',
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
          'Forwarded headers count.',
      }),
    connections: z.strictObject({
      most: whole(10, 1_000_000, 'Connections that are open at the same time.'),
      mostPerAddress: whole(
        1,
        1_000_000,
        'Connections of one address (IPv6: one /64); trusted proxies are not counted.',
      ),
    }),
    deprecation: z.strictObject({
      sunset: z.iso
        .datetime('must be a timestamp in UTC such as 2030-01-31T00:00:00Z')
        .optional()
        .meta({
          description: 'When deprecated operations are to go; told in their Sunset header.',
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
        'gateway shows URLs under the daemon; direct a loopback address, where the ' +
          "sandbox has the host's network.",
      ),
    }),
    defaultPool: z.strictObject({
      name: label('Pool that the first start makes for the tenant key, and the env that sizes it.'),
      replicas: whole(0, 10_000, 'Its replicas at first, and the least that it shrinks to.'),
      maxReplicas: whole(
        0,
        10_000,
        'The most that it grows to. Where that is not more than replicas: a pool without ' +
          'an env, which keeps its size.',
      ),
      template: label('Its template.'),
    }),
    interpreterPool: z.strictObject({
      maxReplicas: whole(
        0,
        10_000,
        'The most that the pool code-interpreter-v1 grows to, which the first start makes. ' +
          'It has none while nobody uses it. 0 makes no such pool.',
      ),
    }),
  })
  .superRefine(({ assembly, secretsDir, redis, role, fleet }, context) => {
    if (role === 'manager' && fleet.managers.length > 0)
      context.addIssue({
        code: 'custom',
        path: ['fleet', 'managers'],
        message: 'must be empty where role is manager: a manager is no worker of another one',
      });
    if (assembly === 'embedded') return;
    const needed = `must be set where assembly is ${assembly}`;
    if (secretsDir === undefined)
      context.addIssue({ code: 'custom', path: ['secretsDir'], message: needed });
    if (redis.urls.length === 0)
      context.addIssue({ code: 'custom', path: ['redis', 'urls'], message: needed });
  });

/** Durations in milliseconds; `dataDir` and `templatesDir` absolute. */
export type Config = z.infer<typeof ConfigSchema>;
