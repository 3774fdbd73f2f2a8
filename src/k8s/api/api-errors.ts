import { NotDone } from '../../contracts/not-done.ts';
import { unavailable } from '../../model/refusals.ts';

/** One of the reasons inside a refusal: the field it is about, where it is about one. */
export interface RefusalCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

export interface Refused {
  readonly status: number;
  /**
   * Kubernetes' machine-readable word, such as `Conflict`, `AlreadyExists`, `Expired`; empty where
   * the answer has none.
   */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly RefusalCause[];
  readonly retryAfterSeconds: number | undefined;
  /**
   * The object that is not there, as the API server itself says it, such as `pods` and its name.
   */
  readonly missing?: { readonly kind: string; readonly name: string };
}

/** The API server answered with a status of 400 or more. Of a write: nothing was written. */
export class ApiRefused extends NotDone implements Refused {
  override readonly name = 'ApiRefused';
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly RefusalCause[];
  override readonly retryAfterSeconds: number | undefined;
  readonly missing: Refused['missing'];

  constructor({ status, reason, message, causes, retryAfterSeconds, missing }: Refused) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
    this.retryAfterSeconds = retryAfterSeconds;
    this.missing = missing;
  }

  /**
   * Tells the tenant why in our own words: the API server names users and rights, which are not the
   * tenant's to know.
   */
  get told(): string {
    if (this.status === 429 || this.status >= 500) return 'the Kubernetes API server is overloaded';
    if (this.status !== 403) return 'the Kubernetes API server does not accept this';
    return this.message.includes('exceeded quota')
      ? 'the daemon may not do this: a quota of the namespace is used up'
      : 'the daemon may not do this: it has no rights in the namespace of this team';
  }
}

export const isRefused = (error: unknown, status: number): boolean =>
  error instanceof ApiRefused && error.status === status;

/**
 * Whether the API server said that there is no such object, of that kind where one is given. Any
 * other answer of 404 says nothing of it: it may be a proxy's, or that of an API server that lacks
 * the kind.
 */
export const isAbsent = (error: unknown, kind?: string): boolean =>
  error instanceof ApiRefused &&
  error.status === 404 &&
  error.missing !== undefined &&
  error.missing.kind === (kind ?? error.missing.kind);

/** For `catch`: nothing where there is no such object; else the error goes on. */
export const notFound = (error: unknown): undefined => {
  if (isAbsent(error)) return undefined;
  throw error;
};

const AWAY = 'the Kubernetes API server can not be reached';

/** Not one byte of the request was written: nothing happened, and nothing will. */
export class NotSent extends NotDone {
  override readonly name = 'NotSent';
  readonly told = AWAY;
}

/** A read that got no whole answer. */
export class ApiUnreachable extends NotDone {
  override readonly name = 'ApiUnreachable';
  readonly told = AWAY;
}

/** The API server took the request to open a link, and no answer came in time. */
export class LinkLate extends ApiUnreachable {}

/** Makes a refusal of what a client may repeat later; passes anything else on. */
export const asRefusal = (error: unknown): unknown =>
  error instanceof NotDone ? unavailable(error.told, error.retryAfterSeconds) : error;

/**
 * Makes an error of an answer of 400 or more: a `Status` object, or whatever stands between us and
 * the API server put there.
 */
export const refusedBy = (
  status: number,
  body: string,
  retryAfter: string | undefined,
): ApiRefused => {
  const said = statusIn(body);
  const { reason, message, details } = said ?? {};
  const seconds =
    typeof details?.retryAfterSeconds === 'number'
      ? details.retryAfterSeconds
      : Number(retryAfter ?? Number.NaN);
  return new ApiRefused({
    status,
    reason: typeof reason === 'string' ? reason : '',
    message:
      typeof message === 'string' && message !== ''
        ? message.slice(0, LONGEST_MESSAGE)
        : `status ${status}: ${body.slice(0, LONGEST_FOREIGN_TEXT)}`,
    causes: Array.isArray(details?.causes) ? details.causes.slice(0, MOST_CAUSES).map(causeOf) : [],
    retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined,
    missing: said ? missingIn(said) : undefined,
  });
};

interface StatusObject {
  readonly kind?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: {
    readonly causes?: unknown;
    readonly retryAfterSeconds?: unknown;
    readonly kind?: unknown;
    readonly name?: unknown;
  } | null;
}

/**
 * Names the object that NotFound is about. Undefined where nothing is named: the API server also
 * says NotFound of a kind that it does not know.
 */
const missingIn = ({ kind, reason, details }: StatusObject): Refused['missing'] => {
  if (
    kind !== 'Status' ||
    reason !== 'NotFound' ||
    typeof details?.kind !== 'string' ||
    typeof details.name !== 'string' ||
    details.name === ''
  )
    return undefined;
  return { kind: details.kind, name: details.name };
};

const LONGEST_MESSAGE = 4_096;
const LONGEST_FOREIGN_TEXT = 200;
const MOST_CAUSES = 32;

const statusIn = (body: string): StatusObject | undefined => {
  try {
    const parsed = JSON.parse(body) as unknown;
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
};

const causeOf = (cause: unknown): RefusalCause => {
  const { reason, field, message } = (typeof cause === 'object' && cause !== null ? cause : {}) as {
    reason?: unknown;
    field?: unknown;
    message?: unknown;
  };
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { reason: textOf(reason), field: textOf(field), message: textOf(message) };
};
