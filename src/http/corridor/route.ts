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

export type ContentType = 'application/octet-stream' | 'application/x-tar';

/** Anyone, any valid key, or an admin key. */
export type Access = 'open' | 'tenant' | 'admin';

/** `also`: sessions beside keys. `alone`: only sessions. */
export type SessionAccess = 'also' | 'alone';

/** A mismatch is refused as a missing resource. */
export interface PathParams<P> {
  readonly schema: z.ZodType<P>;
  readonly otherwise: (given: Readonly<Record<string, string>>) => Refusal;
  /** The schema checks only their local part; a cluster may precede it. */
  readonly names?: Readonly<Record<string, NameKindOf>>;
}

/** 2026-01-01T00:00:00Z, in seconds since the epoch. */
export const DEPRECATED_SINCE = 1_767_225_600;

export interface RowName {
  readonly operationId: string;
  readonly path: string;
}

/** By default with the same method. */
export interface SpelledRow extends RowName {
  readonly method?: RouteSpec<Access, unknown, unknown, unknown>['method'];
}

/** RFC 9745: the operation still works. */
export interface Deprecation {
  readonly since: number;
  readonly method: RouteSpec<Access, unknown, unknown, unknown>['method'];
  /** With `{…}` parameters of the row's own path. */
  readonly successor: string;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON, except PlainText, EventStream and StreamedAnswer. */
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sets the ETag. */
  readonly revision?: Revision;
  /** The body contains a secret. */
  readonly secret?: boolean;
}

export interface RouteRequest<A extends Access, B, Q, P> {
  readonly caller: A extends 'open' ? undefined : Caller;
  /** Set only on rows with `sessions`. */
  readonly session: ConsoleSession | undefined;
  readonly body: B;
  readonly query: Q;
  readonly params: P;
  /** Aborts if the client disconnects early, or with a Refusal if the key is revoked or expires. */
  readonly signal: () => AbortSignal;
  readonly room: () => AnswerRoom;
  /** Refuses another cluster's pool. */
  readonly localPool: (poolName: string) => string;
  readonly incoming: Incoming;
  /** In ms, set by a manager; overrides body and configuration. */
  readonly waitMs: number | undefined;
  readonly step: OnStep | undefined;
  readonly keyed: Keyed | undefined;
}

export interface Incoming {
  /** Without a trailing slash. */
  readonly base: () => string;
  readonly ifMatch: IfMatch | undefined;
  /** The header must not repeat. */
  readonly header: (name: string) => string | undefined;
  /** Returns the first type if the client accepts none. */
  readonly accepts: (first: string, ...others: readonly string[]) => string;
  /** Has one reader. */
  readonly content: () => Readable;
}

/** Links repetitions under an Idempotency-Key to the first request. */
export interface Keyed {
  /** Stored in the record that the operation writes. */
  readonly mark: RequestFingerprint;
  readonly opening: IdempotentRequest;
  /** Shared only with the request's repetitions. */
  readonly seed: () => Buffer;
}

/** Why a repeated request has its effect only once. */
export type Effect<R> =
  /** The row ignores an Idempotency-Key. */
  | { readonly kind: 'unkeyed' }
  /** A repetition names the same resource. */
  | { readonly kind: 'repeatable' }
  /**
   * The fingerprint is written atomically with the effect. `find` returns an earlier attempt's
   * result, even after a crash. For `instance`, see Requests.
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
   * The operation claims the key atomically with its effect. `pending` resolves when a refused
   * attempt's outcome is known.
   */
  | {
      readonly kind: 'opened';
      readonly pending: (mark: RequestFingerprint) => Promise<void> | undefined;
    };

/** By default, rules see requests unchanged. */
export interface RuledAs<B, Q> {
  /** The row that this row spells differently. */
  readonly as?: SpelledRow;
  /** The row that a body selects, if not this one. */
  readonly becomes?: (body: B) => RowName | undefined;
  /** Other operations that the request implies. The strictest verdict applies. */
  readonly also?: (asked: { readonly body: B; readonly query: Q }) => readonly string[];
  /** The body with the canonical row's field names. */
  readonly body?: (asked: { readonly body: B }) => object;
  /** The schema accepts these fields; the handler ignores them. */
  readonly ignores?: readonly string[];
  /** An approval never covers a whole session. */
  readonly onceOnly?: true;
}

export interface Media {
  /** Streams of any length; by default of the first type. */
  readonly takes?: readonly ContentType[];
  /** For events, `answers` has the schema of their data. */
  readonly only?: 'text/event-stream' | ContentType;
  /** Alternatives to JSON for a 200. */
  readonly also?: readonly (
    | 'text/plain'
    | 'text/event-stream'
    | 'text/vnd.mermaid'
    | ContentType
  )[];
}

export interface RouteSpec<A extends Access, B, Q, P> {
  /** A verb and a noun, used by generated clients. Never changes after a release. */
  readonly operationId: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{…}` parameters. */
  readonly path: string;
  readonly access: A;
  readonly sessions?: SessionAccess;
  readonly summary: string;
  readonly body?: z.ZodType<B>;
  readonly query?: z.ZodType<Q>;
  readonly params?: PathParams<P>;
  readonly answers: Readonly<Record<number, z.ZodType>>;
  readonly media?: Media;
  /** Without those of keys and malformed requests. */
  readonly refusals: readonly RefusalCode[];
  readonly deprecated?: Deprecation;
  /** A GET honors If-None-Match, a PUT or PATCH If-Match. */
  readonly versioned?: true;
  /** Takes no slot, and limits its own concurrency. */
  readonly waits?: true | ((request: RouteRequest<A, B, Q, P>) => boolean);
  /** Absent if only the stored answer proves the effect. */
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

/** The corridor calls `handle` only with input that the row's schemas and access have accepted. */
export const route = <A extends Access, B = undefined, Q = undefined, P = undefined>(
  spec: RouteSpec<A, B, Q, P>,
): Route => spec as unknown as Route;

export const ok = (body: object): Answer => ({ status: 200, body });
export const created = (body: object): Answer => ({ status: 201, body });

/** Enables conditional GET, and If-Match on PUT and PATCH. */
export const versioned = (answer: Answer, revision: Revision): Answer => ({ ...answer, revision });

/** Not cacheable, and stored only encrypted. */
export const secret = (answer: Answer): Answer => ({
  ...answer,
  secret: true,
  headers: { ...answer.headers, 'Cache-Control': 'no-store' },
});
