import type { OpenSession } from '../../services/console/console-operations.ts';
import type { Context } from '../reply/context.ts';

/** A page request after the checks that all pages share. */
export interface PageRequest {
  readonly context: Context;
  /** The console's origin. */
  readonly site: string;
  readonly session: OpenSession | undefined;
  /** Also without a session. */
  readonly token: string | undefined;
  readonly fields: ReadonlyMap<string, string>;
  readonly rest: string;
  readonly address: string;
}

/**
 * `path` may end in `/*`. Without `open`, a GET redirects to the login and a POST needs the
 * session's CSRF field. Every POST must come from the console's own origin.
 */
export interface ConsoleRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operation: string;
  readonly open?: true;
  readonly handle: (request: PageRequest) => void | Promise<void>;
}
