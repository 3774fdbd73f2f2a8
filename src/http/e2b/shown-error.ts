import type { ErrorAnswer } from '../reply/error-table.ts';

/** An error as E2B's SDKs read it: they look at the number, and show the text. */
export interface ShownError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly code: number; readonly message: string };
}

/** Returns what a client of the compatible API is told in place of an answer of the REST API. */
export const shownError = ({ status: given, headers, body }: ErrorAnswer): ShownError => {
  const { 'WWW-Authenticate': _ofTheOtherPort, ...rest } = headers;
  const { errorCode, error, detail } = body;
  // They take 409 for a pause that there is already: no error is shown as that.
  const status = errorCode === 'SANDBOX_NOT_RUNNING' ? 404 : given === 409 ? 412 : given;
  const message =
    errorCode === 'API_KEY_REQUIRED'
      ? 'an API key is required: the header X-API-KEY'
      : withDetail(error, detail ?? {});
  return { status, headers: rest, body: { code: status, message } };
};

/** Adds what an SDK would not show: it knows no details. */
const withDetail = (
  error: string,
  { approvalId, message }: Readonly<Record<string, unknown>>,
): string => {
  if (typeof approvalId === 'string') return `${error} (approval ${approvalId})`;
  return typeof message === 'string' ? `${error}: ${message}` : error;
};
