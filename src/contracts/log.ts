export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One JSON line per state change or refusal. Never a secret, never a body. */
export interface Log {
  /** Whether lines below `info` are written: what only they tell is not found out otherwise. */
  readonly detailed: boolean;
  /** Every event that an actor is told, every intent, every request at its begin. */
  trace(fields: Readonly<Record<string, unknown>>, event: string): void;
  debug(fields: Readonly<Record<string, unknown>>, event: string): void;
  info(fields: Readonly<Record<string, unknown>>, event: string): void;
  warn(fields: Readonly<Record<string, unknown>>, event: string): void;
  error(fields: Readonly<Record<string, unknown>>, event: string): void;
}

/** Writes nothing. */
export const silentLog: Log = {
  detailed: false,
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};

/** The log of a process, whose level may change while it runs. */
export interface LevelledLog extends Log {
  /** The least that is written. */
  level: LogLevel;
}
