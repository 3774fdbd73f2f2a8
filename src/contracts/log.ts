import type { LogEventCode } from './log-events.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * One JSON line per state change or refusal, by the code of its event. Contains neither secrets nor
 * bodies.
 */
export interface Log {
  /** Whether lines below `info` are written. Callers skip work that serves only such lines. */
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

/** A process's log, with a level that may change at run time. */
export interface LevelledLog extends Log {
  /** Lowest level that is written. */
  level: LogLevel;
}
