import { z } from 'zod';

export const Health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });
export const ReadinessReport = z
  .object({
    status: z.enum(['ready', 'not ready']),
    problems: z.array(z.string()).describe('What keeps it from being ready; empty when it is.'),
    warnings: z
      .array(z.string())
      .describe('What works, but gives less than it should: see [security](security.md#levels).'),
    isolation: z
      .string()
      .describe(
        'The [level](security.md#levels) in force: `cgroup-v2`, `cgroup-v1`, `prlimit` or `none`.',
      ),
  })
  .meta({ id: 'ReadinessReport' });

export type ReadinessWire = z.infer<typeof ReadinessReport>;
