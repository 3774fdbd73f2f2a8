import type { IncomingMessage } from 'node:http';
import type { Context } from '../reply/context.ts';
import type { ErrorAnswer } from '../reply/error-table.ts';
import type { Route } from './route.ts';

/** Served by a listener instead of the REST API, with its own error format. */
export interface ApiSurface {
  readonly routes: readonly Route[];
  /** Converts key and sandbox id, before other code reads them. */
  readonly adopt: (request: IncomingMessage) => void;
  readonly shown: ShowError;
  /** Uses the REST API's field names. */
  readonly named: (value: unknown) => unknown;
  readonly otherwise: (context: Context) => Promise<never>;
}

export type ShowError = (
  answer: ErrorAnswer,
  request: IncomingMessage,
) => Pick<ErrorAnswer, 'status' | 'headers'> & { readonly body: object };
