import { inspect } from 'node:util';
import type { KeptOutput } from '../../../local-cluster/kept-output.ts';
import { silentLog, type Log, type LogLevel } from '../../../src/contracts/log.ts';

/** Keeps lines from `info` on, for the error of a failed test. */
export const keptLog = (kept: KeptOutput): Log => {
  const keep =
    (level: LogLevel) =>
    (fields: Readonly<Record<string, unknown>>, event: string): void =>
      kept.add(`${level} ${event} ${inspect(fields, { breakLength: Infinity })}\n`);
  return { ...silentLog, info: keep('info'), warn: keep('warn'), error: keep('error') };
};
