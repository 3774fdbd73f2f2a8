import { z } from 'zod';
import { flag, maybe, name, queryInteger } from './common.ts';

export const LogsQuery = z.object({
  container: maybe(name),
  tailLines: queryInteger(1, 10_000).default(200),
  sinceSeconds: maybe(queryInteger(0, 999_999_999)),
  timestamps: maybe(flag),
  follow: maybe(flag),
});

export const SandboxLogs = z.object({
  sandboxId: z.string(), podName: z.string(), container: z.string(), logs: z.string(), truncated: z.boolean(),
});

export type SandboxLogsWire = z.infer<typeof SandboxLogs>;
