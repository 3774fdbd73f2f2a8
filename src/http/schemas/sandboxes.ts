import { z } from 'zod';
import { isInstanceId } from '../../model/identifiers.ts';
import { sandboxNotFound } from '../../model/refusals.ts';
import { SANDBOX_STATUSES } from '../../model/sandbox.ts';
import type { PathParams } from '../route.ts';
import { duration, flag, limit, MAX_REFERENCE, maybe, name, offset, pageOf, seconds, text, timestamp } from './common.ts';

export const SandboxPath: PathParams<{ sandboxId: string }> = {
  schema: z.object({ sandboxId: z.string().refine(isInstanceId) }),
  otherwise: sandboxNotFound,
};

const idleTimeout = z.union([duration, z.literal(0), z.null()], { error: 'must be a duration such as 90s, 30m or 1h30m; "0", 0 and null are never' });

/** `poolName` is required, which the operation's row says in words of its own. */
export const ClaimBody = z.object({
  poolName: maybe(text(MAX_REFERENCE)),
  idleTimeout: maybe(idleTimeout),
});

export const SandboxListQuery = z.object({
  poolName: maybe(text(MAX_REFERENCE)),
  phase: maybe(z.enum(SANDBOX_STATUSES)),
  namespace: maybe(text(MAX_REFERENCE)),
  team: maybe(text(MAX_REFERENCE)),
  user: maybe(text(MAX_REFERENCE)),
  all: maybe(flag),
  limit,
  offset,
});

export const IdleTimeoutBody = z.object({
  idleTimeout: maybe(idleTimeout),
  idleTimeoutSeconds: maybe(z.union([seconds, z.null()], { error: 'must be a whole number of seconds, 0 to ten years; 0 and null are never' })),
});

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const argument = text(131_071);
const argv = z.array(argument).refine((list) => list.length >= 1 && list.length <= 1_024).meta({ minItems: 1, maxItems: 1_024 });

const environment = z.record(z.string(), argument)
  .refine((env) => Object.keys(env).every((key) => VARIABLE.test(key)), 'must have names of letters, digits and underscores')
  .refine((env) => Object.keys(env).length <= 128, 'must have at most 128 entries');

export const ExecBody = z.object({
  command: z.union([text(131_071, 1), argv], {
    error: 'must be a command as text, or an array of 1 to 1024 arguments, without NUL and each below 128 KiB',
  }),
  timeoutSeconds: z.int().min(1).max(300).default(300),
  cwd: maybe(text(4_095).refine((path) => path.startsWith('/'), 'must be an absolute path')),
  env: maybe(environment),
  stdin: maybe(z.string()),
  container: maybe(name),
});

const Sandbox = z.object({
  sandboxId: z.string(),
  namespace: z.string(),
  poolName: z.string(),
  podName: z.string(),
  status: z.enum(SANDBOX_STATUSES),
  claimedAt: timestamp.optional(),
  team: z.string(),
  user: z.string(),
});

const SandboxRecord = Sandbox.extend({
  startedAt: timestamp.optional(),
  terminatedAt: timestamp.optional(),
  recycledAt: timestamp.optional(),
  durationSeconds: z.int().optional(),
  cpu: z.string(),
  memory: z.string(),
  containerImages: z.record(z.string(), z.string()),
  endReason: z.string().optional(),
});

const SandboxWithIdleTimeout = Sandbox.extend({ idleTimeout: z.string(), idleExpiresAt: timestamp.optional() });
const SandboxWithEndpoints = Sandbox.extend({ endpoints: z.record(z.string(), z.string()) });

export const SandboxEnvelope = z.object({ sandbox: Sandbox });
export const SandboxDetailEnvelope = z.object({ sandbox: SandboxWithEndpoints });
export const IdleTimeoutEnvelope = z.object({ sandbox: SandboxWithIdleTimeout });
export const SandboxPage = pageOf(SandboxRecord);
export const SandboxDeletion = z.object({
  sandboxId: z.string(), namespace: z.string(), poolName: z.string(), podName: z.string(), status: z.literal('Stopping'),
});
export const ExecToken = z.object({ token: z.string() });
export const ExecResult = z.object({
  stdout: z.string(), stderr: z.string(), exitCode: z.int(), timedOut: z.boolean(), truncated: z.boolean(), durationMs: z.int(),
});

export type SandboxWire = z.infer<typeof Sandbox>;
export type SandboxDetailWire = z.infer<typeof SandboxWithEndpoints>;
export type SandboxIdleTimeoutWire = z.infer<typeof SandboxWithIdleTimeout>;
export type SandboxRecordWire = z.infer<typeof SandboxRecord>;
export type SandboxDeletionWire = z.infer<typeof SandboxDeletion>;
export type ExecResultWire = z.infer<typeof ExecResult>;
