import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { Revision } from '../../model/identifiers.ts';
import type { OnStep } from '../../contracts/tracing.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { IfMatch } from '../../model/if-match.ts';
import type { Refusal, RefusalCode } from '../../model/refusals.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { ConsoleSession } from '../../model/console-session.ts';
import type { Caller } from '../../model/tenant.ts';
import type { AnswerRoom } from '../../actors/sandbox/commands/answer-budget.ts';
import type { IdempotentRequest } from '../../actors/request/idempotent-request.ts';
import type { NameKindOf } from './local-names.ts';

/** Media types of raw bodies. */
export type ContentType = 'application/octet-stream' | 'application/x-tar';

/** Required caller: anyone, any valid key, or a key with the admin role. */
export type Access = 'open' | 'tenant' | 'admin';

/** `also` permits console sessions beside keys. `alone` permits only console sessions. */
export type SessionAccess = 'also' | 'alone';

/**
 * Schema of the path parameters. A value that does not match gets the same refusal as a missing
 * resource.
 */
export interface PathParams<P> {
  readonly schema: z.ZodType<P>;
  /** Builds the refusal of values that the schema rejects. */
  readonly otherwise: (given: Readonly<Record<string, string>>) => Refusal;
  /** Parameters with an optional cluster prefix. The schema checks only the local part. */
  readonly names?: Readonly<Record<string, NameKindOf>>;
}

/** Start of every deprecation: 2026-01-01T00:00:00Z, in seconds since the epoch. */
export const DEPRECATED_SINCE = 1_767_225_600;

export interface RowName {
  readonly operationId: string;
  readonly path: string;
}

/** The canonical row of another spelling. Without `method`, both rows have the same method. */
export interface SpelledRow extends RowName {
  readonly method?: RouteSpec<Access, unknown, unknown, unknown>['method'];
}

/** A deprecated operation, which still works (RFC 9745). */
export interface Deprecation {
  /** Seconds since the epoch. */
  readonly since: number;
  /** Method of the replacement. */
  readonly method: RouteSpec<Access, unknown, unknown, unknown>['method'];
  /** Path of the replacement, with `{…}` parameters of the row's own path. */
  readonly successor: string;
}

export interface Answer {
  readonly status: number;
  /**
   * Sent as JSON unless it is a PlainText, an EventStream or a StreamedAnswer. A LongAnswer is sent
   * in pieces.
   */
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Revision of the single object in the body. Sets the ETag. */
  readonly revision?: Revision;
  /** True if the body contains a secret. */
  readonly secret?: boolean;
}

export interface RouteRequest<A extends Access, B, Q, P> {
  readonly caller: A extends 'open' ? undefined : Caller;
  /** The console session. Set only on rows with `sessions`. */
  readonly session: ConsoleSession | undefined;
  readonly body: B;
  readonly query: Q;
  readonly params: P;
  /**
   * Aborts if the client disconnects before the answer ends. If the key is revoked or expires,
   * aborts with a Refusal as the reason.
   */
  readonly signal: () => AbortSignal;
  /**
   * The request's share of the answer budget. Reserves nothing at first, and releases everything
   * when the response closes.
   */
  readonly room: () => AnswerRoom;
  /** Strips a cluster prefix from a pool name. Refuses the name of another cluster's pool. */
  readonly localPool: (poolName: string) => string;
  readonly incoming: Incoming;
  /**
   * Wait of the claim in ms, as set by a manager; overrides the body and the configuration.
   * Undefined if no manager set one.
   */
  readonly waitMs: number | undefined;
  /** Reports the duration of a step. Undefined if steps are not recorded. */
  readonly step: OnStep | undefined;
  /** Set for a POST under an Idempotency-Key. */
  readonly keyed: Keyed | undefined;
}

/** Parts of a request outside the row's schemas. */
export interface Incoming {
  /** URL of this API as the client sees it, without a trailing slash. */
  readonly base: () => string;
  /** The If-Match of a PUT or PATCH, if any. */
  readonly ifMatch: IfMatch | undefined;
  /** Value of a header that must not repeat; undefined if absent. */
  readonly header: (name: string) => string | undefined;
  /** Returns the media type that the client prefers, or the first if it accepts none of them. */
  readonly accepts: (first: string, ...others: readonly string[]) => string;
  /** The raw body of a row whose body is not JSON. Has a single reader. */
  readonly content: () => Readable;
}

/** Links repetitions of a POST under an Idempotency-Key to the first request. */
export interface Keyed {
  /** Stored in the record that the operation writes. */
  readonly mark: RequestFingerprint;
  /** Used by an operation that claims the key itself. */
  readonly opening: IdempotentRequest;
  /** Secret that only this request and its repetitions share. */
  readonly seed: () => Buffer;
}

/** How a repeated request has its effect only once. */
export type Effect<R> =
  /** The row ignores an Idempotency-Key. */
  | { readonly kind: 'unkeyed' }
  /**
   * A repetition has the same effect, because it names the resource or derives its name from the
   * fingerprint.
   */
  | { readonly kind: 'repeatable' }
  /**
   * The fingerprint is written to a record atomically with the effect. `find` returns the result of
   * an earlier attempt, even after a crash; undefined without one. For `instance`, see Requests.
   */
  | {
      readonly kind: 'recorded';
      readonly find: (
        request: R,
        mark: RequestFingerprint,
        instance?: InstanceId,
      ) => Promise<Answer | undefined>;
    }
  /**
   * The operation claims the key atomically with its effect, and finds the result of an earlier
   * attempt. `pending` resolves when the outcome of a refused attempt is known; undefined if it is
   * known already.
   */
  | {
      readonly kind: 'opened';
      readonly pending: (mark: RequestFingerprint) => Promise<void> | undefined;
    };

/** How approval rules see the requests of a row. Absent if they see requests unchanged. */
export interface RuledAs<B, Q> {
  /** The row of which this row is another spelling. */
  readonly as?: SpelledRow;
  /** Returns the row that a body selects, if not this one. */
  readonly becomes?: (body: B) => RowName | undefined;
  /** Returns other operations that the request implies. The strictest verdict applies. */
  readonly also?: (asked: { readonly body: B; readonly query: Q }) => readonly string[];
  /** Returns the body with the canonical row's field names. */
  readonly body?: (asked: { readonly body: B }) => object;
  /** Body fields that the schema accepts and the handler ignores. */
  readonly ignores?: readonly string[];
  /** An approval never covers a whole session. */
  readonly onceOnly?: true;
}

/** Media types other than JSON, in requests and answers. */
export interface Media {
  /**
   * The body is a stream of any length in one of these types. The first is the default type.
   * Handlers read it with `incoming.content`.
   */
  readonly takes?: readonly ContentType[];
  /** The only type of a 200. For events, `answers` has the schema of their data. */
  readonly only?: 'text/event-stream' | ContentType;
  /** Alternatives to JSON for a 200. */
  readonly also?: readonly (
    | 'text/plain'
    | 'text/event-stream'
    | 'text/vnd.mermaid'
    | ContentType
  )[];
}

/** A complete API operation: input, access, answers and handler. */
export interface RouteSpec<A extends Access, B, Q, P> {
  /**
   * Name in the OpenAPI document and in generated clients: a verb and a noun. Never changes after a
   * release.
   */
  readonly operationId: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Has `{…}` for parameters. The method and path identify the operation. */
  readonly path: string;
  readonly access: A;
  /** Absent if console sessions may not call it. */
  readonly sessions?: SessionAccess;
  readonly summary: string;
  readonly body?: z.ZodType<B>;
  readonly query?: z.ZodType<Q>;
  readonly params?: PathParams<P>;
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Absent if the row uses only JSON. */
  readonly media?: Media;
  /** Refusals specific to the operation, without those of keys and malformed requests. */
  readonly refusals: readonly RefusalCode[];
  readonly deprecated?: Deprecation;
  /** Its answer is `versioned`: a GET honors If-None-Match, a PUT or PATCH If-Match. */
  readonly versioned?: true;
  /**
   * The operation, or this request, mostly waits. It takes no slot, and limits its own concurrency.
   */
  readonly waits?: true | ((request: RouteRequest<A, B, Q, P>) => boolean);
  /** Absent if only the stored answer proves the effect of a request under an Idempotency-Key. */
  readonly effect?: Effect<RouteRequest<A, B, Q, P>>;
  readonly rules?: RuledAs<B, Q>;
  readonly handle: (request: RouteRequest<A, B, Q, P>) => Answer | Promise<Answer>;
}

export type AnyRequest = RouteRequest<Access, unknown, unknown, unknown>;

/** A row whose types are checked and erased. */
export interface Route extends Omit<
  RouteSpec<Access, unknown, unknown, unknown>,
  'handle' | 'effect' | 'rules'
> {
  readonly effect?: Effect<AnyRequest>;
  readonly rules?: RuledAs<unknown, unknown>;
  readonly handle: (request: AnyRequest) => Answer | Promise<Answer>;
}

/**
 * Erases the row's types. The corridor calls `handle` only with input that the row's own schemas
 * and access have accepted.
 */
export const route = <A extends Access, B = undefined, Q = undefined, P = undefined>(
  spec: RouteSpec<A, B, Q, P>,
): Route => spec as unknown as Route;

export const ok = (body: object): Answer => ({ status: 200, body });
export const created = (body: object): Answer => ({ status: 201, body });

/**
 * Marks an answer that shows one object at a revision. Enables conditional GET, and If-Match on PUT
 * and PATCH.
 */
export const versioned = (answer: Answer, revision: Revision): Answer => ({ ...answer, revision });

/**
 * Marks an answer with a secret. It is not cacheable, and is stored only encrypted under an
 * Idempotency-Key.
 */
export const secret = (answer: Answer): Answer => ({
  ...answer,
  secret: true,
  headers: { ...answer.headers, 'Cache-Control': 'no-store' },
});
