import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Admission } from '../../../limits/admission.ts';
import { readWhole } from '../../../corridor/request-body.ts';
import { streamedBody } from '../../../corridor/streamed-body.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { boundValues, mostBytesOf, wholeMessages } from './call-bounds.ts';

/** The content types of a call that is a stream. */
export const STREAM_TYPE = /^application\/connect\+/i;

/** Returns the path of a request, without its query. */
export const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?', 1)[0] ?? '/';

export interface ReadCallTerms {
  readonly admission: Pick<Admission, 'arriving' | 'parse'>;
  readonly sandbox: AddressedSandbox;
}

/**
 * Reads the body of a call once its tenant's turn has come. Refuses a body that is too large with
 * PAYLOAD_TOO_LARGE, or with INVALID_ARGUMENT if it has too many values; no object is made of it.
 */
export const readCall = async (
  request: IncomingMessage,
  response: ServerResponse,
  { admission, sandbox }: ReadCallTerms,
): Promise<Buffer> => {
  const { arriving } = admission;
  const mostBytes = mostBytesOf(pathOf(request));
  const body = await readWhole(request, response, { arriving, mostBytes });
  await admission.parse(sandbox.caller, body.length);
  boundValues(body, STREAM_TYPE.test(request.headers['content-type'] ?? ''));
  return body;
};

/** Reads the messages of a call that streams as they come, each under the same terms. */
export const readMessages = (
  request: IncomingMessage,
  response: ServerResponse,
  { admission, sandbox }: ReadCallTerms,
): AsyncIterable<Buffer> =>
  wholeMessages(streamedBody(request, response), async (message) => {
    await admission.parse(sandbox.caller, message.length);
    boundValues(message, true);
  });

/** Whether an error says what is wrong with the body of a call. */
export const isOfCall = (error: unknown): error is Refusal =>
  error instanceof Refusal &&
  (error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ARGUMENT');
