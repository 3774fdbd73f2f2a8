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
 * Reads `URL secretFile=/PATH`: an address that is told of approvals, and the file with the secret
 * of its signatures. A fault never quotes the URL, which may be as good as a secret.
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
      'must be URL secretFile=/PATH each: http:// or https://, without user and fragment',
    );
    return z.NEVER;
  });

/** The settings of one part each, as schema.ts puts them together. */

const DAY_MS = 24 * 3_600_000;

export const tracingSettings = z.strictObject({
  endpoint: collectorUrl.optional().meta({
    description:
      'Collector of traces, by OTLP over HTTP. Unset: OTEL_EXPORTER_OTLP_ENDPOINT; ' +
      'without it no traces are recorded.',
  }),
  samplePercent: whole(
    0,
    100,
    'Of the requests whose client records no trace, how many are recorded, in percent.',
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
    'Of what is sent to the collector. Unset: OTEL_EXPORTER_OTLP_COMPRESSION, else none.',
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
        'What each trace says of this daemon, each NAME=VALUE, percent-encoded. Unset: ' +
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
        'Which requests pass (allow), wait for a person (require) or are refused (deny); the ' +
        'first rule that holds decides, and without one a request passes.',
    }),
  pendingFor: duration(10_000, DAY_MS, 'How long a request waits for a person.'),
  grantFor: duration(10_000, DAY_MS, 'How long an approved request may be repeated.'),
  sessionFor: duration(10_000, 8 * 3_600_000, 'How long an approval for a session is good.'),
  kept: whole(100, 1_000_000, 'Approvals that are over and can still be read.'),
  webhooks: z
    .array(webhook, 'must be a list of webhooks')
    .max(8)
    .meta({
      description:
        'Who is told of approvals by a signed POST, each URL secretFile=/PATH; the file with ' +
        'the secret of its signatures is read at the start.',
      secret: true,
    }),
  webhooksFor: duration(
    10_000,
    DAY_MS,
    'How long a message is sent to a webhook again and again; then it is a dead letter.',
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
        'Folders whose entries templates name as dir:NAME (a root file system) and ' +
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
      description: 'Prefixes of the images that pools may name themselves; empty: any image.',
    }),
  unpackedDir: path(
    'Folder that OCI images are unpacked into; every uid must be able to pass through to it.',
  ).optional(),
  maxBytes: whole(1_048_576, 1_099_511_627_776, 'Bytes that one image may have unpacked.'),
  unusedAfter: duration(
    60_000,
    3_650 * DAY_MS,
    'An unpacked image that no template and no sandbox uses is removed after so long.',
  ),
});

export const keysSettings = z
  .strictObject({
    defaultLifetime: duration(
      60_000,
      3_650 * DAY_MS,
      'How long an API key lives that was made without expiresAt.',
    ),
    maxLifetime: duration(60_000, 3_650 * DAY_MS, 'The longest that an API key may live.'),
    creation: choice(
      ['everyone', 'admins'],
      'Who may make API keys: everyone, so that tenants make further ones of their ' +
        'own, or admins alone.',
    ),
    requestsPerSecond: whole(
      0,
      1_000_000,
      'Requests that one API key may send to one replica in a second; 0: as many as it likes.',
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
          'Where Redis is (redis://HOST:PORT, or rediss:// with TLS): one, or some ' +
          'nodes of a cluster.',
      }),
    mode: choice(['standalone', 'cluster'], 'Whether it is one Redis or a Redis cluster.'),
    username: z
      .string('must be text')
      .min(1, 'must not be empty')
      .max(128)
      .optional()
      .meta({ description: 'User of Redis.' }),
    passwordFile: path('File with the password of Redis; read at the start.').optional(),
    caFile: path(
      'File (PEM) of who must have signed the certificate of Redis. Unset: whom Node trusts.',
    ).optional(),
    prefix: label('With which every key in Redis begins, so that several services can share one.'),
  })
  .refine((group) => group.mode === 'cluster' || group.urls.length <= 1, {
    path: ['urls'],
    error: 'must be one, unless redis.mode is cluster',
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
      'Origin under which people open the console, such as https://sandpool.example.com. ' +
      'Unset: loopback addresses alone.',
  }),
});

export const openIdSettings = z
  .strictObject({
    issuer: issuer.optional().meta({
      description: 'Issuer of OpenID Connect for the console. Unset: nobody logs in by it.',
    }),
    clientId: z
      .string('must be text')
      .min(1, 'must not be empty')
      .max(256)
      .optional()
      .meta({ description: 'The client that the provider knows this daemon by.' }),
    clientSecretFile: path('File with the secret of the client; read at the start.').optional(),
    scopes: z
      .array(
        z.string('must be text').regex(/^[!#-[\]-~]{1,128}$/, 'must be scopes'),
        'must be a list of scopes',
      )
      .max(16)
      .meta({ description: 'Scopes that the provider is asked for.' }),
    roleClaim: claimName('Claim of the ID token by whose values people get their roles.'),
    viewers: claimValues('a viewer, who looks'),
    operators: claimValues('an operator, who decides approvals'),
    admins: claimValues('an admin, who ends sessions of others as well'),
    userClaim: claimName("Claim of the user whose API keys are the person's own."),
  })
  .refine((group) => (group.issuer === undefined) === (group.clientId === undefined), {
    path: ['clientId'],
    error: 'must be set beside openId.issuer, and only then',
  })
  .refine((group) => group.scopes.includes('openid'), {
    path: ['scopes'],
    error: 'must hold openid',
  });

export const terminalSettings = z.strictObject({
  allowedOrigins: z.array(origin, 'must be a list of origins').max(64).meta({
    description: 'Origins of web pages that may open terminals, besides the daemon itself.',
  }),
  framesPerSecond: whole(
    10,
    1_000_000,
    'Frames that the client of one terminal may send in a second; one that sends more ' +
      'is read from later.',
  ),
  bytesPerSecond: whole(65_536, 1_073_741_824, 'Bytes in these frames; the same.'),
  tenantFramesPerSecond: whole(
    10,
    1_000_000,
    'Frames in a second to all terminals of one tenant on one replica.',
  ),
  tenantBytesPerSecond: whole(65_536, 1_073_741_824, 'Bytes in these frames.'),
});

export const auditSettings = z.strictObject({
  mode: choice(
    ['on', 'off'],
    'Whether every write over the API is taken down: who, what, and how it went.',
  ),
  folder: path(
    "Folder of the audit's files, of this daemon alone. Unset: audit in dataDir.",
  ).optional(),
  fileBytes: whole(
    65_536,
    1_073_741_824,
    'Bytes of one file of the audit; then the next one begins.',
  ),
  files: whole(2, 10_000, 'Files of the audit that are kept; the oldest go.'),
  stdout: choice(
    ['on', 'off'],
    'Whether each line of the audit goes to the standard output too, as JSON, for a collector.',
  ),
  anchor: z
    .string('must be text')
    .regex(
      /^(?:syslog|(?:file|command):\/[^\0]{1,4095})$/,
      'must be syslog, file:/PATH or command:/PATH',
    )
    .meta({
      description:
        "Where the audit's last hash is told each minute, so that a chain that was " +
        'written anew is found: file:/PATH, syslog, or command:/PATH, a program that ' +
        'reads it. Unset: nowhere.',
    })
    .optional(),
});

export const historySettings = z
  .strictObject({
    listWindow: duration(
      0,
      3_650 * DAY_MS,
      'How long a finished sandbox shows in lists that do not ask for a phase.',
    ),
    retention: duration(60_000, 3_650 * DAY_MS, 'How long a finished sandbox is kept.'),
    totalBytes: whole(
      16_777_216,
      1_125_899_906_842_624,
      'Bytes of finished sandboxes with their events; the oldest of the user with ' +
        'most go first.',
    ),
    tenantBytes: whole(
      16_777_216,
      1_125_899_906_842_624,
      "What one user may have of them; beyond it the user's own oldest go.",
    ),
  })
  .refine((group) => group.listWindow <= group.retention, {
    path: ['listWindow'],
    error: 'must not exceed history.retention',
  });
