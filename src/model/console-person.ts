import type { ConsoleSession } from './console-session.ts';

/** A person at the console, as displayed. */
export interface ConsolePerson extends ConsoleSession {
  /** Display name; never compared. */
  readonly name: string;
  /** Users whose API keys belong to the person. */
  readonly users: readonly string[];
}

/** Identity of the data folder's owner, who logs in by a link if there are no operators. */
export const OWNER = 'owner';
