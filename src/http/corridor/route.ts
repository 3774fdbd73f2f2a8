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

/** Types of bodies that are passed on as they come. */
export type ContentType = 'application/octet-stream' | 'application/x-tar';

/** Who may call: anyone, any good key, a key with the admin role. */
export type Access = 'open' | 'tenant' | 'admin';

/** Whether a person at the console may call it too, or alone. */
export type SessionAccess = 'also' | 'alone';

/**
 * Describes what stands in a path. A value that does not fit names nothing, so it gets the refusal
 * of what is not there.
 */
export interface PathParams<P> {
  readonly schema: z.ZodType<P>;
  /** Makes the refusal of values that the schema does not take. */
  readonly otherwise: (given: Readonly<Record<string, string>>) => Refusal;
  /** Parameters that may name their cluster before them; the schema sees the local part. */
  readonly names?: Readonly<Record<string, NameKindOf>>;
}

/**
 * Moment since which every operation that is to go is deprecated: 2026-01-01T00:00:00Z, in seconds
 * since the epoch.
 */
export const DEPRECATED_SINCE = 1_767_225_600;

/** Names a row. */
export interface RowName {
  readonly operationId: string;
  readonly path: string;
}

/** Names a row that another one comes to; without a method it has the other one's. */
export interface SpelledRow extends RowName {
  readonly method?: RouteSpec<Access, unknown, unknown, unknown>['method'];
}

/** An operation that still works and is to go (RFC 9745). */
export interface Deprecation {
  /** Seconds since the epoch. */
  readonly since: number;
  /** Method of the operation that replaces it. */
  readonly method: RouteSpec<Access, unknown, unknown, unknown>['method'];
  /** Its path; `{…}` as in the row's own path. */
  readonly successor: string;
}

export interface Answer {
  readonly status: number;
  /**
   * Sent as JSON, unless it is a PlainText, an EventStream or a StreamedAnswer; a LongAnswer piece
   * by piece.
   */
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Revision of the one object that it shows: makes its ETag. */
  readonly revision?: Revision;
  /** Its body holds a secret. */
  readonly secret?: boolean;
}

export interface RouteRequest<A extends Access, B, Q, P> {
  readonly caller: A extends 'open' ? undefined : Caller;
  /** The person at the console who calls; only of a row that has `sessions`. */
  readonly session: ConsoleSession | undefined;
  readonly body: B;
  readonly query: Q;
  readonly params: P;
  /**
   * Aborts when the client goes away before it is answered, or its key is revoked or expires: that
   * is its reason then, a Refusal.
   */
  readonly signal: () => AbortSignal;
  /**
   * Room in the budget for answers, of which nothing is taken yet; given back when the response is
   * over.
   */
  readonly room: () => AnswerRoom;
  /** The local part of a pool's name that may carry a cluster's; refuses another cluster's. */
  readonly localPool: (poolName: string) => string;
  readonly incoming: Incoming;
  /**
   * How long a manager has the claim wait, in ms, in place of what its body or this cluster says;
   * undefined: none says so.
   */
  readonly waitMs: number | undefined;
  /** Tells what a part of it took; where it is recorded. */
  readonly step: OnStep | undefined;
  /** Set for a POST under an Idempotency-Key. */
  readonly keyed: Keyed | undefined;
}

/** Holds the parts of a request that no schema of its row takes. */
export interface Incoming {
  /** The URL of this API as the client knows it, without a slash at its end. */
  readonly base: () => string;
  /** The If-Match of a PUT or PATCH that has one. */
  readonly ifMatch: IfMatch | undefined;
  /** Text of a header that may be given once; undefined where it is not given. */
  readonly header: (name: string) => string | undefined;
  /** The one of these types that the client likes best; the first where it likes none. */
  readonly accepts: (first: string, ...others: readonly string[]) => string;
  /** The body of a row that takes other types than JSON, as it comes; read by one. */
  readonly content: () => Readable;
}

/** Ties the repetitions of a POST under an Idempotency-Key to the first one. */
export interface Keyed {
  /** For the record that it writes. */
  readonly mark: RequestFingerprint;
  /** For an operation that opens the request by itself. */
  readonly opening: IdempotentRequest;
  /** Secret that its repetitions share and no other request has. */
  readonly seed: () => Buffer;
}

/** Says how a request has its effect once, where it is repeated. */
export type Effect<R> =
  /** A POST ignores an Idempotency-Key. */
  | { readonly kind: 'unkeyed' }
  /** A repetition has the same effect: it names what it changes, or derives it from the mark. */
  | { readonly kind: 'repeatable' }
  /**
   * A record holds the mark, written in one step with the effect. `find` returns what an earlier
   * request of the mark did, after a crash too; undefined where there was none. `instance`: see
   * Requests.
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
   * The operation opens the request in one step with its effect, and finds what an earlier one did.
   * `pending` resolves once it is known what a request did that was refused before that; undefined
   * where it is known.
   */
  | {
      readonly kind: 'opened';
      readonly pending: (mark: RequestFingerprint) => Promise<void> | undefined;
    };

/** Says as what the rules of approval see a row's requests. Absent: as they come. */
export interface RuledAs<B, Q> {
  /** The row is this one with its name spelled in another way. */
  readonly as?: SpelledRow;
  /** Returns the row that such a body comes to, where that is not this one. */
  readonly becomes?: (body: B) => RowName | undefined;
  /** Returns further operations that such a request comes to: the strictest verdict counts. */
  readonly also?: (asked: { readonly body: B; readonly query: Q }) => readonly string[];
  /** Returns the body with the fields of the operation's own row, in one spelling. */
  readonly body?: (asked: { readonly body: B }) => object;
  /** Fields of its body that its schema knows and that have no effect. */
  readonly ignores?: readonly string[];
  /** It is never approved for a whole session. */
  readonly onceOnly?: true;
}

/** Names the types other than JSON that a row takes and gives. */
export interface Media {
  /**
   * The body is a stream of any length, of one of these types; the first is also what an untyped
   * one is. `incoming.content` reads it.
   */
  readonly takes?: readonly ContentType[];
  /** Its 200 is always this; `answers` says what one event's data is. */
  readonly only?: 'text/event-stream' | ContentType;
  /** Its 200 may be one of these instead of JSON. */
  readonly also?: readonly (
    | 'text/plain'
    | 'text/event-stream'
    | 'text/vnd.mermaid'
    | ContentType
  )[];
}

/**
 * One operation of the API, whole: what it takes, who may call it, what it answers, and the one
 * call behind it.
 */
export interface RouteSpec<A extends Access, B, Q, P> {
  /**
   * Its name in the document and in clients made from it: a verb and what it is about. Never
   * changes once released.
   */
  readonly operationId: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{…}` for parameters; with the method it names the operation in docs/api.md. */
  readonly path: string;
  readonly access: A;
  /** Absent: no session may call it. */
  readonly sessions?: SessionAccess;
  readonly summary: string;
  readonly body?: z.ZodType<B>;
  readonly query?: z.ZodType<Q>;
  readonly params?: PathParams<P>;
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Absent: JSON alone. */
  readonly media?: Media;
  /** The refusals of its own; those of keys and of malformed requests go without saying. */
  readonly refusals: readonly RefusalCode[];
  readonly deprecated?: Deprecation;
  /** Its answer is `versioned`: a GET heeds If-None-Match, a PUT or PATCH If-Match. */
  readonly versioned?: true;
  /**
   * It mostly waits, such a request at least, and bounds by itself how many of it are under way.
   */
  readonly waits?: true | ((request: RouteRequest<A, B, Q, P>) => boolean);
  /** Absent: under an Idempotency-Key its answer is kept, and nothing else tells of it. */
  readonly effect?: Effect<RouteRequest<A, B, Q, P>>;
  readonly rules?: RuledAs<B, Q>;
  readonly handle: (request: RouteRequest<A, B, Q, P>) => Answer | Promise<Answer>;
}

/** A request to any row. */
export type AnyRequest = RouteRequest<Access, unknown, unknown, unknown>;

/** A row of the table, its types checked and then forgotten. */
export interface Route extends Omit<
  RouteSpec<Access, unknown, unknown, unknown>,
  'handle' | 'effect' | 'rules'
> {
  readonly effect?: Effect<AnyRequest>;
  readonly rules?: RuledAs<unknown, unknown>;
  readonly handle: (request: AnyRequest) => Answer | Promise<Answer>;
}

/** The router hands `handle` only what this row's own schemas and access let through. */
export const route = <A extends Access, B = undefined, Q = undefined, P = undefined>(
  spec: RouteSpec<A, B, Q, P>,
): Route => spec as unknown as Route;

export const ok = (body: object): Answer => ({ status: 200, body });
export const created = (body: object): Answer => ({ status: 201, body });

/**
 * Shows one object at this revision: a GET of it may be conditional, and a PUT of it by If-Match.
 */
export const versioned = (answer: Answer, revision: Revision): Answer => ({ ...answer, revision });

/** Holds a secret: no cache may keep it, and an Idempotency-Key keeps it sealed only. */
export const secret = (answer: Answer): Answer => ({
  ...answer,
  secret: true,
  headers: { ...answer.headers, 'Cache-Control': 'no-store' },
});
