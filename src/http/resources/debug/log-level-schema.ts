import { z } from 'zod';
import { LOG_LEVELS } from '../../../contracts/log.ts';
import { maybe, timestamp } from '../../corridor/common-schema.ts';

const level = z.enum(LOG_LEVELS);

export const SetLogLevelBody = z.object({
  level,
  forSeconds: maybe(z.int().min(1).max(86_400)).describe(
    'For so long; then it is that of the settings again. Left out: until the daemon starts again.',
  ),
});

export const LogLevelReport = z
  .object({
    replica: z.string().describe('Whose log this is: that of who answers.'),
    level: level.describe('The least that is logged now.'),
    configured: level.describe('That of the settings.'),
    until: timestamp.optional().describe('Then it is `configured` again.'),
  })
  .meta({ id: 'LogLevelReport' });

export type LogLevelWire = z.infer<typeof LogLevelReport>;
