import { z } from 'zod';
import { isInstanceId } from '../../../model/identifiers.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import { SANDBOX_STATUSES } from '../../../model/sandbox.ts';
import type { PathParams } from '../../corridor/route.ts';
import {
  clusterID,
  flag,
  limit,
  MAX_REFERENCE,
  maybe,
  name,
  offset,
  pageOf,
  seconds,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';
import { IDLE_TIMEOUT, idleTimeout, metadata, variables } from './claim-schema.ts';

export const SandboxPath: PathParams<{ sandboxId: string }> = {
  schema: z.object({
    sandboxId: z
      .string()
      .refine(isInstanceId)
      .describe("A sandbox of the caller's, by the id that its claim answered."),
  }),
  otherwise: sandboxNotFound,
  names: { sandboxId: 'sandbox' },
};

export const ADMINS_ALONE = 'Admins alone.';
export const SandboxListQuery = z.object({
  clusterID,
  poolName: maybe(text(MAX_REFERENCE)).describe('Of this pool alone.'),
  phase: maybe(z.enum(SANDBOX_STATUSES)).describe('In this phase alone.'),
  namespace: maybe(text(MAX_REFERENCE)).describe(`Of this namespace. ${ADMINS_ALONE}`),
  team: maybe(text(MAX_REFERENCE)).describe(`Of this team. ${ADMINS_ALONE}`),
  user: maybe(text(MAX_REFERENCE)).describe(`Of this user. ${ADMINS_ALONE}`),
  all: maybe(flag).describe(`Of every tenant. ${ADMINS_ALONE}`),
  metadata: maybe(metadata).describe(
    'By the metadata of the claim, such as `metadata.job=42`: a parameter for each pair, all of ' +
      'which it must have. Then sandboxes that live are listed, and no finished ones.',
  ),
  limit,
  offset,
});

export const IdleTimeoutBody = z.object({
  idleTimeout: maybe(idleTimeout).describe(IDLE_TIMEOUT),
  idleTimeoutSeconds: maybe(
    z.union([seconds, z.null()], {
      error: 'must be a whole number of seconds, 0 to ten years; 0 and null are never',
    }),
  ).describe('The same in seconds; 0 and null are never.'),
});

export const SandboxStateBody = z.object({
  state: z
    .enum(['paused', 'running'])
    .describe('`paused`: all of it stands still, and keeps its memory. `running`: it goes on.'),
});

const argument = text(131_071);
const argv = z
  .array(argument)
  .refine((list) => list.length >= 1 && list.length <= 1_024)
  .meta({ minItems: 1, maxItems: 1_024 });

export const ExecBody = z.object({
  command: z
    .union([text(131_071, 1), argv], {
      error:
        'must be a command as text, or an array of 1 to 1024 arguments, without NUL and ' +
        'each below 128 KiB',
    })
    .describe('A text is run by `/bin/sh -c`, an array as it stands, without a shell.'),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(300)
    .default(300)
    .describe('Then its whole process group is killed, and the answer is 200 with `timedOut`.'),
  cwd: maybe(
    text(4_095)
      .refine((path) => path.startsWith('/'), 'must be an absolute path')
      .meta({ pattern: '^/[^\\u0000]*$', maxLength: 4_095 }),
  ).describe("An absolute path; else the template's `workingDir`."),
  env: maybe(variables(131_071)).describe(
    'At most 128 variables, over those of the template. Names hold letters, digits and ' +
      'underscores.',
  ),
  stdin: maybe(z.string()).describe(
    'Its standard input, then end of file. What it has not read at its end is dropped. ' +
      'Left out: nothing.',
  ),
  container: maybe(name).describe(
    "The container's name; left out, the first one's. One that has ended is 409.",
  ),
});

const sandboxFields = {
  sandboxId: z.string().describe('A UUID, version 7. The instance has it from its birth.'),
  namespace: z.string().describe("The owner's."),
  poolName: z.string(),
  podName: z.string().describe("`sb-` and the id: the instance's name as a workload."),
  status: z.enum(SANDBOX_STATUSES),
  claimedAt: timestamp.optional(),
  team: z.string().describe("The owner's; of an unclaimed instance the pool's."),
  user: z.string().describe('The same.'),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .describe('As its claim said, while it lives. Absent where that said nothing.'),
  paused: z
    .literal(true)
    .optional()
    .describe('It is Running, and stands still. Absent where it goes on.'),
};

const Sandbox = z.object(sandboxFields).meta({
  id: 'Sandbox',
  description: `
Status: \`Starting\` its process comes up · \`Idle\` unclaimed, ready or for the moment not ·
\`Running\` claimed · \`Stopping\` it ends · \`Failed\` an unclaimed one that died, until it is
cleared away · \`Completed\` finished, in lists alone.`.trim(),
});

const SandboxRecord = z
  .object({
    ...sandboxFields,
    startedAt: timestamp.optional().describe('When its main process started.'),
    terminatedAt: timestamp.optional().describe('When it ended.'),
    recycledAt: timestamp
      .optional()
      .describe('When what it held was given back and its record closed.'),
    durationSeconds: z
      .int()
      .optional()
      .describe('Whole seconds from its claim to its end, or to now.'),
    cpu: z.string().describe('Its limit, as the template has it.'),
    memory: z.string().describe('Its limit, as the template has it.'),
    containerImages: z.record(z.string(), z.string()).describe('Container to image.'),
    endReason: z.string().optional().describe('Why it ended: see [SandboxRecord](#sandboxrecord).'),
  })
  .meta({
    id: 'SandboxRecord',
    description: `
A sandbox in a list, with its times and its end. End reasons: \`deleted\` by its owner or an
admin · \`force-deleted\` with its pool · \`idle-timeout\` · \`max-lifetime\` · \`claim-failed\` a
file of its claim could not be written · \`exited\` its main process ended, of several containers
the first one's · \`oom-killed\` that needed more memory than its limit, as far as the cluster
tells · \`killed\` the cluster ended it, such as by an eviction · \`lost\` it was found dead, its
exit code unknown · \`start-failed\`, \`start-timeout\`, \`container-ended\`, \`retired\`:
unclaimed ones.`.trim(),
  });

const SandboxWithIdleTimeout = z
  .object({
    ...sandboxFields,
    idleTimeout: z.string().describe('`0s` is never.'),
    idleExpiresAt: timestamp
      .optional()
      .describe('When it ends if nothing happens. Absent where it never does.'),
  })
  .meta({ id: 'SandboxWithIdleTimeout' });

const SandboxWithEndpoints = z
  .object({
    ...sandboxFields,
    endpoints: z
      .record(z.string(), z.string())
      .describe(
        'Endpoint name to URL, under this API; the key is needed there too. Empty where ' +
          'the template names none.',
      ),
    endedContainers: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'Containers beside the first that have ended by themselves, and how. The sandbox ' +
          'goes on without them.',
      ),
    idleTimeout: z.string().optional().describe('While it runs. `0s` is never.'),
    idleExpiresAt: timestamp
      .optional()
      .describe(
        'When it ends if nothing happens, as far as this replica knows of use; use ' +
          'through another may have moved it. Absent where it never does.',
      ),
  })
  .meta({ id: 'SandboxWithEndpoints' });

export const SandboxEnvelope = z.object({ sandbox: Sandbox }).meta({ id: 'SandboxEnvelope' });
export const SandboxDetailEnvelope = z
  .object({ sandbox: SandboxWithEndpoints })
  .meta({ id: 'SandboxDetailEnvelope' });
export const IdleTimeoutEnvelope = z
  .object({ sandbox: SandboxWithIdleTimeout })
  .meta({ id: 'IdleTimeoutEnvelope' });
export const SandboxPage = pageOf(SandboxRecord).meta({ id: 'SandboxPage' });
export const SandboxDeletion = z
  .object({
    sandboxId: z.string(),
    namespace: z.string(),
    poolName: z.string(),
    podName: z.string(),
    status: z.literal('Stopping'),
  })
  .meta({ id: 'SandboxDeletion' });
export const SandboxReadinessReport = z.object({
  sandboxId: z.string(),
  ready: z.boolean(),
  endpoints: z.record(z.string(), z.object({ ready: z.boolean(), message: z.string() })),
});
export const ExecToken = z
  .object({ token: z.string().describe('A secret: whoever has it has a shell.') })
  .meta({ id: 'ExecToken' });
export const ExecResult = z
  .object({
    stdout: z.string().describe('At most 1 MiB. Bytes that are not UTF-8 become U+FFFD.'),
    stderr: z.string().describe('The same.'),
    exitCode: z
      .int()
      .describe(
        "The command's own, also when it is not 0. 128 + n after signal n, 127 not found, " +
          '126 not executable, 125 it could not be run at all, 124 timed out.',
      ),
    timedOut: z.boolean(),
    truncated: z
      .boolean()
      .describe('Some output went beyond 1 MiB and was dropped, or was lost on its way.'),
    durationMs: z.int(),
    oomKilled: z
      .literal(true)
      .optional()
      .describe(
        'It was killed, and memory ran out in its sandbox while it ran. Not known on Kubernetes.',
      ),
  })
  .meta({ id: 'ExecResult' });

export type SandboxWire = z.infer<typeof Sandbox>;
export type SandboxDetailWire = z.infer<typeof SandboxWithEndpoints>;
export type SandboxIdleTimeoutWire = z.infer<typeof SandboxWithIdleTimeout>;
export type SandboxRecordWire = z.infer<typeof SandboxRecord>;
export type SandboxDeletionWire = z.infer<typeof SandboxDeletion>;
export type SandboxReadinessWire = z.infer<typeof SandboxReadinessReport>;
export type ExecResultWire = z.infer<typeof ExecResult>;
