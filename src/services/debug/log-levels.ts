import type { Clock } from '../../contracts/clock.ts';
import type { LevelledLog, LogLevel } from '../../contracts/log.ts';
import type { Caller } from '../../model/tenant.ts';

/**
 * `until`: time at which `configured` applies again; undefined if never. Without `forMs` the level
 * stays until a restart.
 */
export interface LogLevelView {
  readonly replica: string;
  readonly level: LogLevel;
  readonly configured: LogLevel;
  readonly until: number | undefined;
}
export interface LogLevelRequest {
  readonly level: LogLevel;
  readonly forMs?: number;
}

export interface LogLevels {
  readonly getLogLevel: (caller: Caller) => LogLevelView;
  readonly setLogLevel: (caller: Caller, request: LogLevelRequest) => LogLevelView;
}

/** A restart restores the configured level (operations `GET` and `PUT /debug/log-level`). */
export const logLevels = ({
  log,
  clock,
  replica,
}: {
  readonly log: LevelledLog;
  readonly clock: Clock;
  readonly replica: string;
}): LogLevels => {
  const configured: LogLevel = log.level;
  let until: number | undefined;
  let callOff = (): void => undefined;
  const view = (): LogLevelView => ({ replica, level: log.level, configured, until });
  return {
    getLogLevel: view,
    setLogLevel: (_caller, { level, forMs }) => {
      callOff();
      callOff = () => undefined;
      until = forMs === undefined || level === configured ? undefined : clock.now() + forMs;
      const from = log.level;
      log.level = level;
      if (until !== undefined) {
        callOff = clock.at(until, () => {
          until = undefined;
          const from = log.level;
          log.level = configured;
          log.warn({ from, to: configured }, 'log-level-reset');
        });
      }
      log.warn(
        {
          from,
          to: level,
          ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
        },
        'log-level-changed',
      );
      return view();
    },
  };
};
