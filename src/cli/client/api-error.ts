/** The service said no: an answer that is not a success. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  readonly requestId: string | undefined;
  /** Whole seconds, where the service named a delay. */
  readonly retryAfter: number | undefined;

  constructor(message: string, answer: ErrorAnswer) {
    super(message);
    this.status = answer.status;
    this.errorCode = answer.errorCode;
    this.detail = answer.detail;
    this.requestId = answer.requestId;
    this.retryAfter = answer.retryAfter;
  }
}

/**
 * There was no answer: nobody listens, the connection broke, or the deadline passed. What was asked
 * may have happened.
 */
export class ConnectionFailed extends Error {
  override readonly name = 'ConnectionFailed';
  /** `ECONNREFUSED`, `ENOTFOUND`, … or `DEADLINE`. */
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface ErrorAnswer {
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
}

/** The error that an answer's body tells of; an answer that isn't ours is told by its status. */
export const apiErrorFrom = (
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
): ApiError => {
  const { error, errorCode, detail } = fieldsOf(body);
  const requestId = headers['x-request-id'];
  const retryAfter = Number(headers['retry-after']);
  return new ApiError(typeof error === 'string' ? error : `the server answered ${status}`, {
    status,
    errorCode: typeof errorCode === 'string' ? errorCode : undefined,
    detail: isObject(detail) ? detail : undefined,
    requestId: typeof requestId === 'string' ? requestId : undefined,
    retryAfter: Number.isInteger(retryAfter) ? retryAfter : undefined,
  });
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const fieldsOf = (body: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};
