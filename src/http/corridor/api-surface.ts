import type { IncomingMessage } from 'node:http';
import type { Context } from '../reply/context.ts';
import type { ErrorAnswer } from '../reply/error-table.ts';
import type { Route } from './route.ts';

/** Describes what a listener serves in place of the REST API, and how it says so. */
export interface ApiSurface {
  readonly routes: readonly Route[];
  /** Called before anything is read of a request: has its key and path as they are elsewhere. */
  readonly adopt: (request: IncomingMessage) => void;
  /** Returns an error as clients of this API read it. */
  readonly shown: ShowError;
  /** Returns a body or an answer with the names that the REST API has for what it is about. */
  readonly named: (value: unknown) => unknown;
  /** Refuses what no row answered. */
  readonly otherwise: (context: Context) => Promise<never>;
}

export type ShowError = (
  answer: ErrorAnswer,
  request: IncomingMessage,
) => Pick<ErrorAnswer, 'status' | 'headers'> & { readonly body: object };
