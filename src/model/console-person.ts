import type { ConsoleSession } from './console-session.ts';

/** A person at the console, as pages show them. */
export interface ConsolePerson extends ConsoleSession {
  /** How the person is called, for people to read; never compared. */
  readonly name: string;
  /** Users whose API keys are the person's own. */
  readonly users: readonly string[];
}

/** The identity of who logs in by a link where nobody is configured: the data folder's owner. */
export const OWNER = 'owner';
