import type { ConsoleSession } from './console-session.ts';

export interface ConsolePerson extends ConsoleSession {
  /** Display name; never compared. */
  readonly name: string;
  readonly users: readonly string[];
}

/** The data folder's owner logs in by a link if there are no operators. */
export const OWNER = 'owner';
