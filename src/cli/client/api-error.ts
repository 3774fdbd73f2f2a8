/** The status is the message if the answer is not from Sandpool. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    body: string,
  ) {
    const { error, errorCode, detail } = fieldsOf(body);
    super(typeof error === 'string' ? error : `the server answered ${status}`);
    const requestId = headers['x-request-id'];
    const retryAfter = Number(headers['retry-after']);
    this.status = status;
    this.errorCode = typeof errorCode === 'string' ? errorCode : undefined;
    this.detail = isObject(detail) ? detail : undefined;
    this.requestId = typeof requestId === 'string' ? requestId : undefined;
    this.retryAfter = Number.isInteger(retryAfter) ? retryAfter : undefined;
  }
}

/** The request may have taken effect. */
export class ConnectionFailed extends Error {
  override readonly name = 'ConnectionFailed';
  /** `ECONNREFUSED`, `ENOTFOUND`, … or `DEADLINE`. */
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const fieldsOf = (text: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};
