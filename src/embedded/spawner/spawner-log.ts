import type { LogEventCode } from '../../contracts/log-events.ts';

/** Sends events to the log of the connected daemon; without a daemon, drops them. */
export interface SpawnerLog {
  info(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
  warn(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
  error(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
}
