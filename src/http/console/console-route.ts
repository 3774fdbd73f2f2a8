import type { OpenSession } from '../../services/console/console-operations.ts';
import type { Context } from '../reply/context.ts';

/** A request to a page, of which everything is checked that is the same for all. */
export interface PageRequest {
  readonly context: Context;
  /** The console's origin. */
  readonly site: string;
  readonly session: OpenSession | undefined;
  /** The token of the cookie, whether or not it has a session. */
  readonly token: string | undefined;
  /** Fields of the form; empty for a GET. */
  readonly fields: ReadonlyMap<string, string>;
  /** Text in the path in the place of `*`. */
  readonly rest: string;
  /** Address of who asks, or what counts as one. */
  readonly address: string;
}

/**
 * A page: `path` may end in `/*`. With `open` nobody need be logged in; else a GET leads to the
 * login, and a POST needs the session's CSRF field. Every POST is from the console's own origin.
 */
export interface ConsoleRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Its name in the audit and in metrics. */
  readonly operation: string;
  readonly open?: true;
  readonly handle: (request: PageRequest) => void | Promise<void>;
}
