import { z } from 'zod';
import { maybe, MAX_REFERENCE, text } from '../../http/resources/common-schema.ts';
import { metadata, variables } from '../../http/resources/sandboxes/claim-schema.ts';
import type { PathParams } from '../../http/router/route.ts';
import { bytesOfPairs, MOST_VARIABLE_BYTES } from '../../model/claim-terms.ts';
import { MAX_DURATION_MS } from '../../model/durations.ts';
import { isInstanceId } from '../../model/identifiers.ts';
import { sandboxNotFound } from '../../model/refusals.ts';

/** Whole seconds from now. */
export const timeout = z
  .int()
  .min(0)
  .max(MAX_DURATION_MS / 1_000);

/** Body that creates a sandbox, at both paths. Fields that are not named here are not heeded. */
export const NewSandbox = z.object({
  templateID: text(MAX_REFERENCE, 1),
  timeout: maybe(timeout),
  metadata: maybe(metadata),
  envVars: maybe(
    variables(MOST_VARIABLE_BYTES).refine(
      (env) => bytesOfPairs(env) <= MOST_VARIABLE_BYTES,
      `must have names and values of at most ${MOST_VARIABLE_BYTES} bytes together`,
    ),
  ),
  autoPause: maybe(z.boolean()),
  autoResume: maybe(z.object({ enabled: z.boolean() })),
  secure: maybe(z.boolean()),
  allow_internet_access: maybe(z.boolean()),
  network: maybe(z.unknown()),
  volumeMounts: maybe(z.unknown()),
  mcp: maybe(z.unknown()),
  iam: maybe(z.unknown()),
});
export type NewSandboxBody = z.infer<typeof NewSandbox>;

/** The id is a UUID by the time that it comes here: see `adopt`. */
export const SandboxPath: PathParams<{ sandboxId: string }> = {
  schema: z.object({ sandboxId: z.string().refine(isInstanceId) }),
  otherwise: sandboxNotFound,
};

export const ShownSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  clientID: z.string(),
  envdVersion: z.string(),
  envdAccessToken: z.string(),
  trafficAccessToken: z.string(),
  domain: z.string(),
});

export const ListedSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  clientID: z.string(),
  envdVersion: z.string(),
  startedAt: z.string(),
  endAt: z.string(),
  state: z.enum(['running', 'paused']),
  cpuCount: z.int(),
  memoryMB: z.int(),
  diskSizeMB: z.int(),
  metadata: z.record(z.string(), z.string()),
});

export const SandboxDetail = ShownSandbox.extend(ListedSandbox.shape);
