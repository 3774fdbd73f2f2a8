import { z } from 'zod';
import { flag, maybe, name, queryInteger } from '../../corridor/common-schema.ts';

export const LogsQuery = z.object({
  container: maybe(name).describe("The container's name. There is one, so it need not be said."),
  tailLines: queryInteger(1, 10_000).default(200).describe('The last so many lines.'),
  sinceSeconds: maybe(queryInteger(0, 999_999_999)).describe(
    'Nothing that was printed longer ago.',
  ),
  timestamps: maybe(flag).describe('Each line with the time at which it was printed before it.'),
  follow: maybe(flag).describe(
    'Go on with what it prints, as Server-Sent Events, until the sandbox has ended.',
  ),
});

export const SandboxLogs = z
  .object({
    sandboxId: z.string(),
    podName: z.string(),
    container: z.string(),
    logs: z
      .string()
      .describe(
        'Output and errors of the main process, in the order in which they were written. ' +
          'Bytes that are not UTF-8 show as U+FFFD. At most 1 MiB, the end of it.',
      ),
    truncated: z
      .boolean()
      .describe(
        'Older lines were asked for than are here: more than `tailLines`, more than 1 ' +
          'MiB, or no longer kept.',
      ),
  })
  .meta({ id: 'SandboxLogs' });

export type SandboxLogsWire = z.infer<typeof SandboxLogs>;
