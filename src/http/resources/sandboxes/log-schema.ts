import { z } from 'zod';
import { flag, maybe, name, queryInteger } from '../../corridor/common-schema.ts';

export const LogsQuery = z.object({
  container: maybe(name).describe('Name of the container. Not needed, because there is only one.'),
  tailLines: queryInteger(1, 10_000).default(200).describe('Number of lines from the end.'),
  sinceSeconds: maybe(queryInteger(0, 999_999_999)).describe(
    'Only lines printed within this many seconds before now.',
  ),
  timestamps: maybe(flag).describe('Start each line with the time at which it was printed.'),
  follow: maybe(flag).describe(
    'Also send new lines, as Server-Sent Events, until the sandbox ends.',
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
        'Standard output and standard error of the main process, in the order in which they ' +
          'were written. Bytes that are not UTF-8 become U+FFFD. At most the last 1 MiB.',
      ),
    truncated: z
      .boolean()
      .describe(
        'Older lines are missing: there are more than `tailLines`, more than 1 MiB, or some ' +
          'are no longer stored.',
      ),
  })
  .meta({ id: 'SandboxLogs' });

export type SandboxLogsWire = z.infer<typeof SandboxLogs>;
