import type { LogLevelView } from '../../../operations/debug/log-levels.ts';
import type { LogLevelWire } from './log-level-schema.ts';
import { timestampOf } from '../timestamp.ts';

export const presentLogLevel = ({
  replica,
  level,
  configured,
  until,
}: LogLevelView): LogLevelWire => ({
  replica,
  level,
  configured,
  ...(until === undefined ? {} : { until: timestampOf(until) }),
});
