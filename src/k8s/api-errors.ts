import { unavailable } from '../model/refusals.ts';

/** One of the reasons inside a refusal: the field it is about, where it is about one. */
export interface RefusalCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

export interface Refused {
  readonly status: number;
  /** Kubernetes' machine-readable word, such as `Conflict`, `AlreadyExists`, `Expired`; empty where the answer has none. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly RefusalCause[];
  readonly retryAfterSeconds: number | undefined;
}

/** The API server answered with a status of 400 or more. Of a write: nothing was written. */
export class ApiRefused extends Error implements Refused {
  override readonly name = 'ApiRefused';
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly RefusalCause[];
  readonly retryAfterSeconds: number | undefined;

  constructor({ status, reason, message, causes, retryAfterSeconds }: Refused) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export const isRefused = (error: unknown, status: number): boolean => error instanceof ApiRefused && error.status === status;

/** For `catch`: nothing where there is no such object; else the error goes on. */
export const notFound = (error: unknown): undefined => {
  if (isRefused(error, 404)) return undefined;
  throw error;
};

/** Not one byte of the request was written: nothing happened, and nothing will. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** A read that got no whole answer. */
export class ApiUnreachable extends Error {
  override readonly name = 'ApiUnreachable';
}

/** What a client may repeat later; anything else is passed on. */
export const asRefusal = (error: unknown): unknown => {
  if (error instanceof NotSent || error instanceof ApiUnreachable) return unavailable('the Kubernetes API server can not be reached');
  // What the API server says names users and rights, which are not the tenant's to know.
  if (error instanceof ApiRefused && error.status === 403) {
    return unavailable(`the daemon may not do this: ${error.message.includes('exceeded quota') ? 'a quota of the namespace is used up' : 'it has no rights in the namespace of this team'}`);
  }
  if (error instanceof ApiRefused && (error.status === 429 || error.status >= 500)) return unavailable('the Kubernetes API server is overloaded');
  return error;
};

/** What an answer of 400 or more says: a `Status` object, or whatever stands between us and the API server put there. */
export const refusedBy = (status: number, body: string, retryAfter: string | undefined): ApiRefused => {
  const said = statusIn(body);
  const { reason, message, details } = said ?? {};
  const seconds = typeof details?.retryAfterSeconds === 'number' ? details.retryAfterSeconds : Number(retryAfter ?? Number.NaN);
  return new ApiRefused({
    status,
    reason: typeof reason === 'string' ? reason : '',
    message: typeof message === 'string' && message !== '' ? message.slice(0, LONGEST_MESSAGE) : `status ${status}: ${body.slice(0, LONGEST_FOREIGN_TEXT)}`,
    causes: Array.isArray(details?.causes) ? details.causes.slice(0, MOST_CAUSES).map(causeOf) : [],
    retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined,
  });
};

interface StatusObject {
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: { readonly causes?: unknown; readonly retryAfterSeconds?: unknown } | null;
}

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
  const { reason, field, message } = (typeof cause === 'object' && cause !== null ? cause : {}) as { reason?: unknown; field?: unknown; message?: unknown };
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { reason: textOf(reason), field: textOf(field), message: textOf(message) };
};
