import type { ErrorAnswer } from '../reply/error-table.ts';

export interface ShownError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly code: number; readonly message: string };
}

export const shownError = ({ status: given, headers, body }: ErrorAnswer): ShownError => {
  const { 'WWW-Authenticate': _ofTheOtherPort, ...rest } = headers;
  const { errorCode, error, detail } = body;
  // SDKs read 409 as "already paused".
  const status = errorCode === 'SANDBOX_NOT_RUNNING' ? 404 : given === 409 ? 412 : given;
  const message =
    errorCode === 'API_KEY_REQUIRED'
      ? 'an API key is required: the header X-API-KEY'
      : withDetail(error, detail ?? {});
  return { status, headers: rest, body: { code: status, message } };
};

const withDetail = (
  error: string,
  { approvalId, message }: Readonly<Record<string, unknown>>,
): string => {
  if (typeof approvalId === 'string') return `${error} (approval ${approvalId})`;
  return typeof message === 'string' ? `${error}: ${message}` : error;
};
