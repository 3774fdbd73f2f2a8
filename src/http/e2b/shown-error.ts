import type { ErrorAnswer } from '../reply/error-table.ts';

/** An error for E2B's SDKs, which read the number and show the text. */
export interface ShownError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly code: number; readonly message: string };
}

/** Translates an error of the REST API for the compatible API. */
export const shownError = ({ status: given, headers, body }: ErrorAnswer): ShownError => {
  const { 'WWW-Authenticate': _ofTheOtherPort, ...rest } = headers;
  const { errorCode, error, detail } = body;
  // SDKs read 409 as "already paused", so no error may use it.
  const status = errorCode === 'SANDBOX_NOT_RUNNING' ? 404 : given === 409 ? 412 : given;
  const message =
    errorCode === 'API_KEY_REQUIRED'
      ? 'an API key is required: the header X-API-KEY'
      : withDetail(error, detail ?? {});
  return { status, headers: rest, body: { code: status, message } };
};

/** Adds the detail to the text, since SDKs do not show details. */
const withDetail = (
  error: string,
  { approvalId, message }: Readonly<Record<string, unknown>>,
): string => {
  if (typeof approvalId === 'string') return `${error} (approval ${approvalId})`;
  return typeof message === 'string' ? `${error}: ${message}` : error;
};
