import { z } from 'zod';
import { parseRule } from '../../model/approvals/policy.ts';
import {
  choice,
  duration,
  issuer,
  label,
  origin,
  path,
  redisUrl,
  whole,
  parseUrl,
} from './fields.ts';
import { collectorUrl, httpHeader, resourceAttribute } from './tracing-forms.ts';

const FORM = /^(\S+)\s+secretFile=(\/[^\0]{1,4095})$/;

/**
 * `URL secretFile=/PATH`: a receiver of approval events. A fault never quotes the URL, which may
 * contain a secret.
 */
const webhook = z
  .string('must be text')
  .max(8_192)
  .transform((text, context) => {
    const [, address = '', secretFile = ''] = FORM.exec(text.trim()) ?? [];
    const url = parseUrl(address);
    if (
      url &&
      /^https?:$/.test(url.protocol) &&
      url.username === '' &&
      url.password === '' &&
      url.hash === ''
    )
      return { url: url.href, secretFile };
    context.addIssue(
      'must each be URL secretFile=/PATH, with an http:// or https:// URL without user and ' +
        'fragment',
    );
    return z.NEVER;
  });

const DAY_MS = 24 * 3_600_000;

export const tracingSettings = z.strictObject({
  endpoint: collectorUrl.optional().meta({
    description:
      'Collector of traces (OTLP over HTTP). Unset: OTEL_EXPORTER_OTLP_ENDPOINT; if that is ' +
      'unset too, no traces are recorded.',
  }),
  samplePercent: whole(
    0,
    100,
    'Percentage of requests to trace, among those whose client sends no trace context.',
  ),
  headers: z
    .array(httpHeader)
    .max(32)
    .optional()
    .meta({
      description:
        'Headers for the collector, each NAME=VALUE, the value percent-encoded. Unset: ' +
        'OTEL_EXPORTER_OTLP_HEADERS.',
      secret: true,
    }),
  compression: choice(
    ['none', 'gzip'],
    'Compression of what is sent to the collector. Unset: OTEL_EXPORTER_OTLP_COMPRESSION, ' +
      'else none.',
  ).optional(),
  serviceName: z
    .string('must be text')
    .min(1)
    .max(255)
    .optional()
    .meta({
      description:
        'Name of this service in traces. Unset: OTEL_SERVICE_NAME, else service.name ' +
        'among resourceAttributes, else sandpool.',
    }),
  resourceAttributes: z
    .array(resourceAttribute)
    .max(64)
    .optional()
    .meta({
      description:
        'Attributes of this daemon in each trace, each NAME=VALUE, percent-encoded. Unset: ' +
        'OTEL_RESOURCE_ATTRIBUTES.',
    }),
});

export const approvalsSettings = z.strictObject({
  rules: z
    .array(z.string('must be text'), 'must be a list of rules')
    .max(200)
    .transform((texts, context) =>
      texts.flatMap((text) => {
        const rule = parseRule(text);
        if (typeof rule !== 'string') return [rule];
        context.addIssue(rule);
        return [];
      }),
    )
    .meta({
      description:
        'Which requests pass (allow), wait for a person (require) or are refused (deny). The ' +
        'first matching rule decides; if none matches, the request passes.',
    }),
  pendingFor: duration(10_000, DAY_MS, "How long a request waits for a person's decision."),
  grantFor: duration(10_000, DAY_MS, 'How long an approved request may be repeated.'),
  sessionFor: duration(10_000, 8 * 3_600_000, 'How long an approval for a session is valid.'),
  kept: whole(100, 1_000_000, 'Maximum number of finished approvals that are stored.'),
  webhooks: z
    .array(webhook, 'must be a list of webhooks')
    .max(8)
    .meta({
      description:
        'Webhooks that receive approvals by signed POST, each URL secretFile=/PATH. The file ' +
        'holds the secret for the signature and is read at the start.',
      secret: true,
    }),
  webhooksFor: duration(
    10_000,
    DAY_MS,
    'How long to retry a message to a webhook; then it becomes a dead letter.',
  ),
});

export const imagesSettings = z.strictObject({
  directories: z
    .array(
      z
        .string('must be text')
        .min(1, 'must not be empty')
        .max(4_096)
        .refine(
          (value) => value.startsWith('/') && !value.includes('\0'),
          'must be absolute paths',
        ),
      'must be a list of absolute paths',
    )
    .max(16)
    .meta({
      description:
        'Folders of the images that templates name as dir:NAME (a root file system) and ' +
        'oci:NAME (an OCI image layout).',
    }),
  allowed: z
    .array(
      z
        .string('must be text')
        .min(1, 'must not be empty')
        .max(512)
        .regex(/^[!-~]+$/, 'must be printable and without spaces'),
      'must be a list of prefixes',
    )
    .max(256)
    .meta({
      description:
        'Prefixes of the images that pools may name. If the list is empty, all images are allowed.',
    }),
  unpackedDir: path(
    'Folder into which OCI images are unpacked. Every uid must be able to traverse it.',
  ).optional(),
  maxBytes: whole(1_048_576, 1_099_511_627_776, 'Maximum size of an unpacked image, in bytes.'),
  unusedAfter: duration(
    60_000,
    3_650 * DAY_MS,
    'Time after which an unpacked image is removed if no template and no sandbox uses it.',
  ),
});

export const keysSettings = z
  .strictObject({
    defaultLifetime: duration(
      60_000,
      3_650 * DAY_MS,
      'Lifetime of API keys that are created without expiresAt.',
    ),
    maxLifetime: duration(60_000, 3_650 * DAY_MS, 'Maximum lifetime of an API key.'),
    creation: choice(
      ['everyone', 'admins'],
      'Whether everyone or only admins may create API keys. With everyone, tenants create ' +
        'their own keys.',
    ),
    requestsPerSecond: whole(
      0,
      1_000_000,
      'Requests per second that one API key may send to one replica; 0: no limit.',
    ),
  })
  .refine((group) => group.defaultLifetime <= group.maxLifetime, {
    path: ['defaultLifetime'],
    error: 'must not exceed keys.maxLifetime',
  });

export const redisSettings = z
  .strictObject({
    urls: z
      .array(redisUrl, 'must be a list of URLs')
      .max(16)
      .meta({
        description:
          'URLs of Redis (redis://HOST:PORT, or rediss:// with TLS): one server, or some nodes ' +
          'of a cluster.',
      }),
    mode: choice(
      ['standalone', 'cluster'],
      'Whether redis.urls names one server or a Redis cluster.',
    ),
    username: z
      .string('must be text')
      .min(1, 'must not be empty')
      .max(128)
      .optional()
      .meta({ description: 'User of Redis.' }),
    passwordFile: path('File with the password of Redis; read at the start.').optional(),
    caFile: path("CA certificates (PEM) for the certificate of Redis. Unset: Node's.").optional(),
    prefix: label('Prefix of every key in Redis, so that several services can share one Redis.'),
  })
  .refine((group) => group.mode === 'cluster' || group.urls.length <= 1, {
    path: ['urls'],
    error: 'must have one entry, unless redis.mode is cluster',
  });

const claimValues = (role: string) =>
  z
    .array(z.string('must be text').min(1).max(256), 'must be a list of texts')
    .max(256)
    .meta({ description: `Values of openId.roleClaim that make a person ${role}.` });

const claimName = (description: string) =>
  z.string('must be text').min(1, 'must not be empty').max(256).meta({ description });

export const consoleSettings = z.strictObject({
  mode: choice(['on', 'off'], 'Whether people can log in at /console.'),
  url: origin.optional().meta({
    description:
      'Origin at which people open the console, such as https://sandpool.example.com. Unset: ' +
      'only loopback addresses.',
  }),
});

export const openIdSettings = z
  .strictObject({
    issuer: issuer.optional().meta({
      description: 'Issuer of OpenID Connect for logins to the console. Unset: no such logins.',
    }),
    clientId: z
      .string('must be text')
      .min(1, 'must not be empty')
      .max(256)
      .optional()
      .meta({ description: 'ID of this daemon as a client of the provider.' }),
    clientSecretFile: path('File with the client secret, read at the start.').optional(),
    scopes: z
      .array(
        z.string('must be text').regex(/^[!#-[\]-~]{1,128}$/, 'must be scopes'),
        'must be a list of scopes',
      )
      .max(16)
      .meta({ description: 'Scopes that the daemon requests from the provider.' }),
    roleClaim: claimName(
      "Claim of the ID token with a person's groups. The groups determine the role.",
    ),
    viewers: claimValues('a viewer, who has read-only access'),
    operators: claimValues('an operator, who decides approvals'),
    admins: claimValues("an admin, who also ends other people's sessions"),
    userClaim: claimName('Claim with the user that owns the API keys of the person.'),
  })
  .refine((group) => (group.issuer === undefined) === (group.clientId === undefined), {
    path: ['clientId'],
    error: 'must be set together with openId.issuer',
  })
  .refine((group) => group.scopes.includes('openid'), {
    path: ['scopes'],
    error: 'must contain openid',
  });

export const terminalSettings = z.strictObject({
  allowedOrigins: z.array(origin, 'must be a list of origins').max(64).meta({
    description: 'Origins of other web pages that may open terminals.',
  }),
  framesPerSecond: whole(
    10,
    1_000_000,
    'Frames per second that the client of one terminal may send. Beyond it, the daemon ' +
      'reads more slowly.',
  ),
  bytesPerSecond: whole(
    65_536,
    1_073_741_824,
    'Bytes per second in these frames, with the same effect.',
  ),
  tenantFramesPerSecond: whole(
    10,
    1_000_000,
    'Frames per second to all terminals of one tenant on one replica.',
  ),
  tenantBytesPerSecond: whole(65_536, 1_073_741_824, 'Bytes per second in these frames.'),
});

export const auditSettings = z.strictObject({
  mode: choice(
    ['on', 'off'],
    'Whether every write over the API is recorded: who, what, and the outcome.',
  ),
  folder: path(
    "Folder of this daemon's audit files; daemons cannot share it. Unset: audit in dataDir.",
  ).optional(),
  fileBytes: whole(
    65_536,
    1_073_741_824,
    'Maximum size of an audit file, in bytes; then a new file begins.',
  ),
  files: whole(2, 10_000, 'Number of audit files to keep; the oldest are deleted.'),
  stdout: choice(
    ['on', 'off'],
    'Whether each audit line is also written to the standard output, as JSON, for a collector.',
  ),
  anchor: z
    .string('must be text')
    .regex(
      /^(?:syslog|(?:file|command):\/[^\0]{1,4095})$/,
      'must be syslog, file:/PATH or command:/PATH',
    )
    .meta({
      description:
        "Target for the audit's last hash each minute, which reveals a rewritten chain: " +
        'file:/PATH, syslog, or command:/PATH, a program that reads it. Unset: ' +
        'nowhere.',
    })
    .optional(),
});

export const historySettings = z
  .strictObject({
    listWindow: duration(
      0,
      3_650 * DAY_MS,
      'How long a finished sandbox appears in lists without a phase filter.',
    ),
    retention: duration(60_000, 3_650 * DAY_MS, 'How long a finished sandbox is stored.'),
    totalBytes: whole(
      16_777_216,
      1_125_899_906_842_624,
      'Maximum size of finished sandboxes with their events, in bytes. Beyond it, the oldest ' +
        'of the user with the most are deleted.',
    ),
    tenantBytes: whole(
      16_777_216,
      1_125_899_906_842_624,
      "Maximum size for one user. Beyond it, the user's own oldest sandboxes are deleted.",
    ),
  })
  .refine((group) => group.listWindow <= group.retention, {
    path: ['listWindow'],
    error: 'must not exceed history.retention',
  });
