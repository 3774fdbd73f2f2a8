import type { IncomingMessage } from 'node:http';
import type { Context } from '../reply/context.ts';
import type { ErrorAnswer } from '../reply/error-table.ts';
import type { Route } from './route.ts';

/** An API that a listener serves in place of the REST API, with its own error format. */
export interface ApiSurface {
  readonly routes: readonly Route[];
  /**
   * Converts a request's key and sandbox id to REST form. Runs before any other code reads them.
   */
  readonly adopt: (request: IncomingMessage) => void;
  /** Formats an error for clients of this API. */
  readonly shown: ShowError;
  /** Returns the sandbox and pool of a body or an answer under the REST API's field names. */
  readonly named: (value: unknown) => unknown;
  /** Refuses a request that matches no row. */
  readonly otherwise: (context: Context) => Promise<never>;
}

export type ShowError = (
  answer: ErrorAnswer,
  request: IncomingMessage,
) => Pick<ErrorAnswer, 'status' | 'headers'> & { readonly body: object };
