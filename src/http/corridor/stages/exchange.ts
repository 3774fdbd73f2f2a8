import type { Caller } from '../../../model/tenant.ts';
import type { ConsoleSession } from '../../../model/console-session.ts';
import type { Context } from '../../reply/context.ts';
import type { WrittenAnswer } from '../idempotency.ts';
import { FREE, type Pass } from '../pass.ts';
import type { Answer, AnyRequest, Route } from '../route.ts';
import type { ClaimOverLink } from './claim-over-link.ts';

export interface ServedRoute extends Route {
  readonly unknownOf?: (body: unknown) => readonly string[];
  readonly queryWarningsOf: (query: string) => readonly string[];
  readonly queryMaps: ReadonlySet<string>;
}

const NO_BYTES = Buffer.alloc(0);

export type RoutedContext = Context & { params: Record<string, string> };

/** Fields name the stage that sets them; later stages read them. */
export class Exchange {
  readonly row: ServedRoute;
  readonly context: RoutedContext;

  /** identify: undefined if the row is open or a session calls. */
  caller: Caller | undefined;
  session: ConsoleSession | undefined;

  /** locate: another cluster has the resource, and checks its name. */
  isElsewhere = false;
  /** locate: rejects if that cluster lacks the resource. */
  requireThere: (() => Promise<void>) | undefined;

  /** read */
  params: unknown;
  query: unknown;

  /** read: `unknown` has the names of unknown fields. */
  bytes: Buffer = NO_BYTES;
  value: unknown;
  unknown: readonly string[] = [];
  overLink: ClaimOverLink = {};

  /** approve, if there are rules. */
  pass: Pass = FREE;

  /** forward: other clusters answer instead of the handler. */
  elsewhere: Elsewhere | undefined;

  /** perform: undefined if `forward` sent the answer. */
  answer: Answer | undefined;
  /** once: stored for repetitions. */
  kept: WrittenAnswer | undefined;

  #request: AnyRequest | undefined;

  constructor(row: ServedRoute, context: RoutedContext) {
    this.row = row;
    this.context = context;
  }

  /** Throws before read. */
  get request(): AnyRequest {
    if (!this.#request) throw new Error('the request was not read');
    return this.#request;
  }

  set request(request: AnyRequest) {
    this.#request = request;
  }

  /** From the client, the approval, or the manager that forwards the claim. */
  get key(): string | undefined {
    const { context, pass, overLink } = this;
    const given = mayBeKeyed(this) ? context.req.headers['idempotency-key'] : undefined;
    return (typeof given === 'string' ? given : undefined) ?? pass.key ?? overLink.key;
  }
}

export const mayBeKeyed = ({ row }: Pick<Exchange, 'row'>): boolean =>
  row.method === 'POST' && row.effect?.kind !== 'unkeyed';

export interface Elsewhere {
  readonly isKept: boolean;
  /** Throws AnsweredElsewhere if the answer must not be stored. */
  readonly answer: (request: AnyRequest) => Promise<Answer>;
}

/** It calls `next`, answers, or throws. */
export type Stage = (exchange: Exchange, next: () => Promise<void>) => Promise<void>;

export const walk = (stages: readonly Stage[], exchange: Exchange): Promise<void> => {
  const from = (index: number): Promise<void> =>
    stages[index]?.(exchange, () => from(index + 1)) ?? Promise.resolve();
  return from(0);
};
