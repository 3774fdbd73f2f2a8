import type { LogEventCode } from '../../contracts/log-events.ts';

/** Drops events while no daemon is connected. */
export interface SpawnerLog {
  info(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
  warn(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
  error(event: LogEventCode, fields?: Readonly<Record<string, unknown>>): void;
}
