import type { Caller } from '../../../model/tenant.ts';
import type { ConsoleSession } from '../../../model/console-session.ts';
import type { Context } from '../../reply/context.ts';
import type { WrittenAnswer } from '../idempotency.ts';
import { FREE, type Pass } from '../pass.ts';
import type { Answer, AnyRequest, Route } from '../route.ts';
import type { ClaimOverLink } from './claim-over-link.ts';

/** A row with the checks and parsers derived from its schemas. */
export interface ServedRoute extends Route {
  /** Returns the unknown fields of a body. */
  readonly unknownOf?: (body: unknown) => readonly string[];
  readonly queryWarningsOf: (query: string) => readonly string[];
  /** From `mapParametersOf`. */
  readonly queryMaps: ReadonlySet<string>;
}

const NO_BYTES = Buffer.alloc(0);

/** Koa's context with the raw path parameters. */
export type RoutedContext = Context & { params: Record<string, string> };

/** One request in the corridor. Each field names the stage that sets it; later stages read it. */
export class Exchange {
  readonly row: ServedRoute;
  readonly context: RoutedContext;

  /** identify: undefined if the row is open, or if a session calls. */
  caller: Caller | undefined;
  session: ConsoleSession | undefined;

  /** locate (managers only): the resource is on another cluster, which checks its name. */
  isElsewhere = false;
  /** locate: rejects if that cluster lacks the resource. */
  requireThere: (() => Promise<void>) | undefined;

  /** read */
  params: unknown;
  query: unknown;

  /** read: the raw body, the parsed JSON, and the names of unknown fields. */
  bytes: Buffer = NO_BYTES;
  value: unknown;
  unknown: readonly string[] = [];
  /** read: a manager's options for a forwarded claim. */
  overLink: ClaimOverLink = {};

  /** approve, if there are rules. */
  pass: Pass = FREE;

  /** forward (managers only): other clusters answer instead of the handler. */
  elsewhere: Elsewhere | undefined;

  /** perform: undefined if `forward` sent the answer itself. */
  answer: Answer | undefined;
  /** once: an answer that is stored for repetitions. */
  kept: WrittenAnswer | undefined;

  #request: AnyRequest | undefined;

  constructor(row: ServedRoute, context: RoutedContext) {
    this.row = row;
    this.context = context;
  }

  /** The handler's request, set by read. Throws if read has not run. */
  get request(): AnyRequest {
    if (!this.#request) throw new Error('the request was not read');
    return this.#request;
  }

  set request(request: AnyRequest) {
    this.#request = request;
  }

  /** The idempotency key: from the client, the approval, or the manager that forwards the claim. */
  get key(): string | undefined {
    const { context, pass, overLink } = this;
    const given = mayBeKeyed(this) ? context.req.headers['idempotency-key'] : undefined;
    return (typeof given === 'string' ? given : undefined) ?? pass.key ?? overLink.key;
  }
}

/** Whether the row honors an Idempotency-Key. */
export const mayBeKeyed = ({ row }: Pick<Exchange, 'row'>): boolean =>
  row.method === 'POST' && row.effect?.kind !== 'unkeyed';

export interface Elsewhere {
  /**
   * True if this daemon stores the first answer under a key; false if the answering cluster does.
   */
  readonly isKept: boolean;
  /** Throws AnsweredElsewhere if the answer must not be stored. */
  readonly answer: (request: AnyRequest) => Promise<Answer>;
}

/**
 * One stage of the corridor. Calls `next` to run the later stages. Otherwise it answers or throws.
 */
export type Stage = (exchange: Exchange, next: () => Promise<void>) => Promise<void>;

/** Runs the stages in order. */
export const walk = (stages: readonly Stage[], exchange: Exchange): Promise<void> => {
  const from = (index: number): Promise<void> =>
    stages[index]?.(exchange, () => from(index + 1)) ?? Promise.resolve();
  return from(0);
};
