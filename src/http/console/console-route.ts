import type { OpenSession } from '../../services/console/console-operations.ts';
import type { Context } from '../reply/context.ts';

/** A page request after the checks that all pages share. */
export interface PageRequest {
  readonly context: Context;
  /** The console's origin. */
  readonly site: string;
  readonly session: OpenSession | undefined;
  /** The cookie's token, with or without a session. */
  readonly token: string | undefined;
  /** Form fields; empty for a GET. */
  readonly fields: ReadonlyMap<string, string>;
  /** The part of the path that `*` matches. */
  readonly rest: string;
  /** The client's address group. */
  readonly address: string;
}

/**
 * A page of the console; `path` may end in `/*`. With `open`, no login is required. Otherwise a GET
 * redirects to the login, and a POST needs the session's CSRF field. Every POST must come from the
 * console's own origin.
 */
export interface ConsoleRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Name in the audit and in metrics. */
  readonly operation: string;
  readonly open?: true;
  readonly handle: (request: PageRequest) => void | Promise<void>;
}
