import { z } from 'zod';

export const Health = z.object({ status: z.literal('ok') });
export const ReadinessReport = z.object({
  status: z.enum(['ready', 'not ready']),
  problems: z.array(z.string()),
  warnings: z.array(z.string()),
  isolation: z.string(),
});

export type ReadinessWire = z.infer<typeof ReadinessReport>;
