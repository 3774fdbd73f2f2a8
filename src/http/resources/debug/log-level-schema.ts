import { z } from 'zod';
import { LOG_LEVELS } from '../../../contracts/log.ts';
import { maybe, timestamp } from '../../corridor/common-schema.ts';

const level = z.enum(LOG_LEVELS);

export const SetLogLevelBody = z.object({
  level,
  forSeconds: maybe(z.int().min(1).max(86_400)).describe(
    'Duration in seconds. Afterwards the level of the settings applies again. If absent, ' +
      'the new level applies until the daemon restarts.',
  ),
});

export const LogLevelReport = z
  .object({
    replica: z.string().describe('Replica that answered. The level applies to its log.'),
    level: level.describe('Lowest level that is logged now.'),
    configured: level.describe('Level of the settings.'),
    until: timestamp
      .optional()
      .describe('When `configured` applies again. Absent if the change has no time limit.'),
  })
  .meta({ id: 'LogLevelReport' });

export type LogLevelWire = z.infer<typeof LogLevelReport>;
