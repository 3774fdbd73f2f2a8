import type { LogLevelView } from '../../operations/log-levels.ts';
import type { LogLevelWire } from '../schemas/log-level.ts';
import { timestampOf } from './timestamp.ts';

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
