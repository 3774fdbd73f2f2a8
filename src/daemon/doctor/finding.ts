import type { Config } from '../config/config.ts';
import type { PidFile } from '../process/pid-file.ts';

/**
 * The result of one look at the machine. `problem`: the daemon does not work so. `warning`: it
 * works, with less.
 */
export interface Finding {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly message: string;
  /** Advice what to do about it; never with `ok`. */
  readonly advice?: string;
}

/** The configuration and the machine that are looked at. */
export interface Patient {
  readonly config: Config;
  /** Whether a setting was asked for, and is no mere default. */
  readonly isGiven?: (setting: string) => boolean;
  /** The daemon of the data folder, where one runs. */
  readonly daemon: PidFile | undefined;
  readonly bwrapPath: string;
  readonly launcherPath: string;
  /** `/etc`, for its accounts. */
  readonly etc: string;
  /** The daemon's, and this program's. */
  readonly uid: number | undefined;
}

/** Changes nothing on the machine. What it throws counts as a problem. */
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
