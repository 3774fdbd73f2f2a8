import type { Config } from '../config/config.ts';
import type { PidFile } from '../process/pid-file.ts';

/** With a `problem` the daemon does not work; with a `warning` it works in part. */
export interface Finding {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly message: string;
  readonly advice?: string;
}

export interface Patient {
  readonly config: Config;
  readonly isGiven?: (setting: string) => boolean;
  readonly daemon: PidFile | undefined;
  readonly bwrapPath: string;
  readonly launcherPath: string;
  readonly etc: string;
  readonly uid: number | undefined;
}

/** Must not change the machine. A thrown error counts as a problem. */
export type Check = (patient: Patient) => Promise<readonly Finding[]> | readonly Finding[];

export const ok = (name: string, message: string): readonly Finding[] => [
  { name, status: 'ok', message },
];
export const warning = (name: string, message: string, advice: string): readonly Finding[] => [
  { name, status: 'warning', message, advice },
];
export const problem = (name: string, message: string, advice: string): readonly Finding[] => [
  { name, status: 'problem', message, advice },
];

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
