import { NotDone } from '../../contracts/not-done.ts';
import { unavailable } from '../../model/refusals.ts';

export interface RefusalCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

export interface Refused {
  readonly status: number;
  /** Such as `Conflict`, `AlreadyExists` or `Expired`; empty if missing. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly RefusalCause[];
  readonly retryAfterSeconds: number | undefined;
  readonly missing?: { readonly kind: string; readonly name: string };
}

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

  /** Tenants must not see the API server's own text, which names users and rights. */
  get told(): string {
    if (this.status === 429 || this.status >= 500) return 'the Kubernetes API server is overloaded';
    if (this.status !== 403) return 'the Kubernetes API server does not accept this';
    return this.message.includes('exceeded quota')
      ? 'Kubernetes forbids this: a quota of the namespace is used up'
      : 'Kubernetes forbids this: Sandpool has no rights in the namespace of this team';
  }
}

export const isRefused = (error: unknown, status: number): error is ApiRefused =>
  error instanceof ApiRefused && error.status === status;

/**
 * Whether the API server said that the object does not exist. Other answers of 404 prove nothing:
 * they may come from a proxy, or from an API server without the kind.
 */
export const isAbsent = (error: unknown, kind?: string): boolean =>
  error instanceof ApiRefused &&
  error.status === 404 &&
  error.missing !== undefined &&
  error.missing.kind === (kind ?? error.missing.kind);

export const notFound = (error: unknown): undefined => {
  if (isAbsent(error)) return undefined;
  throw error;
};

const AWAY = 'the Kubernetes API server cannot be reached';

/** No byte of the request was written. */
export class NotSent extends NotDone {
  override readonly name = 'NotSent';
  readonly told = AWAY;
}

export class ApiUnreachable extends NotDone {
  override readonly name = 'ApiUnreachable';
  readonly told = AWAY;
}

/** The API server received the request to open a link, but did not answer in time. */
export class LinkLate extends ApiUnreachable {}

/** Converts temporary errors, which the client may retry. */
export const asRefusal = (error: unknown): unknown =>
  error instanceof NotDone ? unavailable(error.told, error.retryAfterSeconds) : error;

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

/** Undefined without a name: the API server also answers NotFound for unknown kinds. */
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
