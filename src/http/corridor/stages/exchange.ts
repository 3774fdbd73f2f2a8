import type { Caller } from '../../../model/tenant.ts';
import type { ConsoleSession } from '../../../model/console-session.ts';
import type { Context } from '../../reply/context.ts';
import type { WrittenAnswer } from '../idempotency.ts';
import { FREE, type Pass } from '../pass.ts';
import type { Answer, AnyRequest, Route } from '../route.ts';
import type { ClaimOverLink } from './claim-over-link.ts';

/** A row, and what its schemas say of a request that they don't know all of. */
export interface ServedRoute extends Route {
  /** Returns the fields of a body that its schema doesn't have. */
  readonly unknownOf?: (body: unknown) => readonly string[];
  readonly queryWarningsOf: (query: string) => readonly string[];
  /** See mapParametersOf. */
  readonly queryMaps: ReadonlySet<string>;
}

const NO_BYTES = Buffer.alloc(0);

/** Koa's context with the parameters of the path, as they were sent. */
export type RoutedContext = Context & { params: Record<string, string> };

/**
 * One request on its way through the corridor. Each stage sets what its name says, and reads what
 * the stages before it set.
 */
export class Exchange {
  readonly row: ServedRoute;
  readonly context: RoutedContext;

  /** identify: undefined where a row is open, or a session asks. */
  caller: Caller | undefined;
  session: ConsoleSession | undefined;

  /** locate, of a manager: the path names something of another cluster, which checks the name. */
  isElsewhere = false;
  /** locate: rejects where that cluster doesn't have what the path names. */
  requireThere: (() => Promise<void>) | undefined;

  /** resolve */
  params: unknown;
  query: unknown;

  /** read: the body as bytes, as JSON, and the names of fields that no schema has. */
  bytes: Buffer = NO_BYTES;
  value: unknown;
  unknown: readonly string[] = [];
  /** read: what a manager says of a claim that it passes on. */
  overLink: ClaimOverLink = {};

  /** approve, if there are rules: how the request goes on. */
  pass: Pass = FREE;

  /** forward, of a manager: other clusters answer in place of the row. */
  elsewhere: Elsewhere | undefined;

  /** perform; undefined where `forward` has answered by itself. */
  answer: Answer | undefined;
  /** once: an answer that is kept for repetitions. */
  kept: WrittenAnswer | undefined;

  #request: AnyRequest | undefined;

  constructor(row: ServedRoute, context: RoutedContext) {
    this.row = row;
    this.context = context;
  }

  /** The row's handler gets it; read sets it. */
  get request(): AnyRequest {
    if (!this.#request) throw new Error('the request was not read');
    return this.#request;
  }

  set request(request: AnyRequest) {
    this.#request = request;
  }

  /**
   * The key under which the request has its effect once: of the client, of its approval, or of the
   * manager that passes the claim on.
   */
  get key(): string | undefined {
    const { context, pass, overLink } = this;
    const given = mayBeKeyed(this) ? context.req.headers['idempotency-key'] : undefined;
    return (typeof given === 'string' ? given : undefined) ?? pass.key ?? overLink.key;
  }
}

/** A POST, unless its row ignores an Idempotency-Key. */
export const mayBeKeyed = ({ row }: Pick<Exchange, 'row'>): boolean =>
  row.method === 'POST' && row.effect?.kind !== 'unkeyed';

export interface Elsewhere {
  /** Under a key the first answer is kept here; else whoever answers keeps it. */
  readonly isKept: boolean;
  /** Throws AnsweredElsewhere where the answer is not to be kept. */
  readonly answer: (request: AnyRequest) => Promise<Answer>;
}

/**
 * One stage of the corridor. Calls `next` for the stages after it, or answers or throws in their
 * place.
 */
export type Stage = (exchange: Exchange, next: () => Promise<void>) => Promise<void>;

/** Takes a request through the stages, from the first one. */
export const walk = (stages: readonly Stage[], exchange: Exchange): Promise<void> => {
  const from = (index: number): Promise<void> =>
    stages[index]?.(exchange, () => from(index + 1)) ?? Promise.resolve();
  return from(0);
};
