import type { LogEventCode } from './log-events.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Contains neither secrets nor bodies. */
export interface Log {
  /** If false, callers skip work that serves only lines below `info`. */
  readonly detailed: boolean;
  /** Every event of an actor, every intent, the start of every request. */
  trace(fields: Readonly<Record<string, unknown>>, event: LogEventCode): void;
  debug(fields: Readonly<Record<string, unknown>>, event: LogEventCode): void;
  info(fields: Readonly<Record<string, unknown>>, event: LogEventCode): void;
  warn(fields: Readonly<Record<string, unknown>>, event: LogEventCode): void;
  error(fields: Readonly<Record<string, unknown>>, event: LogEventCode): void;
}

export const silentLog: Log = {
  detailed: false,
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};

export interface LevelledLog extends Log {
  level: LogLevel;
}
