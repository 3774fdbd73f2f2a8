import { z } from 'zod';

export const Health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });
export const ReadinessReport = z
  .object({
    status: z.enum(['ready', 'not ready']),
    problems: z.array(z.string()).describe('Reasons why it is not ready. Empty if it is ready.'),
    warnings: z
      .array(z.string())
      .describe('Restrictions that do not prevent work; see [security](security.md#levels).'),
    isolation: z
      .string()
      .describe(
        'The [level](security.md#levels) in force: `cgroup-v2`, `cgroup-v1`, `prlimit` or `none`.',
      ),
  })
  .meta({ id: 'ReadinessReport' });

export type ReadinessWire = z.infer<typeof ReadinessReport>;
