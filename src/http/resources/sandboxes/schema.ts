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
    sandboxId: z.string().refine(isInstanceId).describe("Id of one of the caller's sandboxes."),
  }),
  otherwise: sandboxNotFound,
  names: { sandboxId: 'sandbox' },
};

export const FOR_ADMINS = 'Only for admins.';
export const SandboxListQuery = z.object({
  clusterID,
  poolName: maybe(text(MAX_REFERENCE)).describe('Only sandboxes of this pool.'),
  phase: maybe(z.enum(SANDBOX_STATUSES)).describe('Only sandboxes in this phase.'),
  namespace: maybe(text(MAX_REFERENCE)).describe(`Only sandboxes in this namespace. ${FOR_ADMINS}`),
  team: maybe(text(MAX_REFERENCE)).describe(`Only sandboxes of this team. ${FOR_ADMINS}`),
  user: maybe(text(MAX_REFERENCE)).describe(`Only sandboxes of this user. ${FOR_ADMINS}`),
  all: maybe(flag).describe(`Sandboxes of all tenants. ${FOR_ADMINS}`),
  metadata: maybe(metadata).describe(
    'Only live sandboxes with this metadata in their claim, such as `metadata.job=42`. Each ' +
      'pair is a parameter, and all pairs must match.',
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
  ).describe('The same in seconds. 0 and null mean never.'),
});

export const SandboxStateBody = z.object({
  state: z
    .enum(['paused', 'running'])
    .describe('`paused`: no process runs, and memory is kept. `running`: the processes run again.'),
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
    .describe('A text is run by `/bin/sh -c`. An array is run unchanged, without a shell.'),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(300)
    .default(300)
    .describe(
      'Time limit in seconds. Then the whole process group is killed, and the answer is 200 ' +
        'with `timedOut`.',
    ),
  cwd: maybe(
    text(4_095)
      .refine((path) => path.startsWith('/'), 'must be an absolute path')
      .meta({ pattern: '^/[^\\u0000]*$', maxLength: 4_095 }),
  ).describe("Working folder, as an absolute path. Default: the template's `workingDir`."),
  env: maybe(variables(131_071)).describe(
    'At most 128 variables, which take precedence over those of the template. Names consist ' +
      'of letters, digits and underscores.',
  ),
  stdin: maybe(z.string()).describe(
    'Standard input of the command, followed by end of file. Input that the command does ' +
      'not read is dropped. Default: empty.',
  ),
  container: maybe(name).describe(
    'Name of the container. Default: the first container. If it has ended, the answer is 409.',
  ),
});

const sandboxFields = {
  sandboxId: z.string().describe('A UUID, version 7. The instance has it from the start.'),
  namespace: z.string().describe('Namespace of the owner.'),
  poolName: z.string(),
  podName: z.string().describe("`sb-` and the id: the name of the instance's workload."),
  status: z.enum(SANDBOX_STATUSES),
  claimedAt: timestamp.optional(),
  team: z
    .string()
    .describe("Team of the owner; of an unclaimed instance, team of the pool's owner."),
  user: z.string().describe("The owner; of an unclaimed instance, the pool's owner."),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .describe('Metadata of the claim, while the sandbox lives. Absent if the claim had none.'),
  paused: z
    .literal(true)
    .optional()
    .describe('The sandbox is Running and paused. Otherwise absent.'),
};

const Sandbox = z.object(sandboxFields).meta({
  id: 'Sandbox',
  description: `
Status: \`Starting\` its process is starting · \`Idle\` unclaimed, ready or temporarily not ready
· \`Running\` claimed · \`Stopping\` it is ending · \`Failed\` an unclaimed instance that died and
is not cleaned up yet · \`Completed\` finished, only in lists.`.trim(),
});

const SandboxRecord = z
  .object({
    ...sandboxFields,
    startedAt: timestamp.optional().describe('When the main process started.'),
    terminatedAt: timestamp.optional().describe('When the sandbox ended.'),
    recycledAt: timestamp
      .optional()
      .describe('When its resources were released and its record was closed.'),
    durationSeconds: z
      .int()
      .optional()
      .describe('Whole seconds from the claim to the end, or to now.'),
    cpu: z.string().describe('CPU limit in the template.'),
    memory: z.string().describe('Memory limit in the template.'),
    containerImages: z.record(z.string(), z.string()).describe('Images by container name.'),
    endReason: z
      .string()
      .optional()
      .describe('Why the sandbox ended; see [SandboxRecord](#sandboxrecord).'),
  })
  .meta({
    id: 'SandboxRecord',
    description: `
A sandbox in a list, with its times and end. End reasons: \`deleted\` by its owner or an admin ·
\`force-deleted\` with its pool · \`idle-timeout\` · \`max-lifetime\` · \`claim-failed\` a file of
its claim could not be written · \`exited\` the main process ended; with several containers, that
of the first · \`oom-killed\` the main process needed more memory than its limit, if the cluster
reports this · \`killed\` the cluster ended it, such as by an eviction · \`lost\` it was found
dead, and its exit code is unknown · \`start-failed\`, \`start-timeout\`, \`container-ended\`,
\`retired\`: only for unclaimed instances.`.trim(),
  });

const SandboxWithIdleTimeout = z
  .object({
    ...sandboxFields,
    idleTimeout: z.string().describe('`0s` means never.'),
    idleExpiresAt: timestamp
      .optional()
      .describe('When the sandbox ends if it stays idle. Absent if it never does.'),
  })
  .meta({ id: 'SandboxWithIdleTimeout' });

const SandboxWithEndpoints = z
  .object({
    ...sandboxFields,
    endpoints: z
      .record(z.string(), z.string())
      .describe(
        'URLs by endpoint name, under this API; requests to them need the key. Empty if the ' +
          'template has no endpoints.',
      ),
    endedContainers: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        'Containers other than the first that have ended by themselves, and how. The ' +
          'sandbox continues without them.',
      ),
    idleTimeout: z
      .string()
      .optional()
      .describe('Present while the sandbox runs. `0s` means never.'),
    idleExpiresAt: timestamp
      .optional()
      .describe(
        'When the sandbox ends if it stays idle, as far as this replica knows; use through ' +
          'another replica may have postponed it. Absent if it never does.',
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
  .object({ token: z.string().describe('A secret. It gives access to a shell.') })
  .meta({ id: 'ExecToken' });
export const ExecResult = z
  .object({
    stdout: z.string().describe('At most 1 MiB. Bytes that are not UTF-8 become U+FFFD.'),
    stderr: z.string().describe('As `stdout`.'),
    exitCode: z
      .int()
      .describe(
        'Exit code of the command: 128 + n after signal n, 127 not found, 126 not ' +
          'executable, 125 could not be run, 124 timed out.',
      ),
    timedOut: z.boolean(),
    truncated: z
      .boolean()
      .describe('Some output was beyond 1 MiB and was dropped, or was lost in transit.'),
    durationMs: z.int(),
    oomKilled: z
      .literal(true)
      .optional()
      .describe(
        'The command was killed, and its sandbox ran out of memory while it ran. Never set ' +
          'on Kubernetes.',
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
