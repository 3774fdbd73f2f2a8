import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Admission } from '../../../limits/admission.ts';
import { readWhole } from '../../../corridor/request-body.ts';
import { streamedBody } from '../../../corridor/streamed-body.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { boundValues, mostBytesOf, wholeMessages } from './call-bounds.ts';

export const STREAM_TYPE = /^application\/connect\+/i;

export const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?', 1)[0] ?? '/';

export interface ReadCallTerms {
  readonly admission: Pick<Admission, 'arriving' | 'parse'>;
  readonly sandbox: AddressedSandbox;
}

/** Reads at the tenant's turn. Refuses too many values before parsing. */
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

export const readMessages = (
  request: IncomingMessage,
  response: ServerResponse,
  { admission, sandbox }: ReadCallTerms,
): AsyncIterable<Buffer> =>
  wholeMessages(streamedBody(request, response), async (message) => {
    await admission.parse(sandbox.caller, message.length);
    boundValues(message, true);
  });

export const isOfCall = (error: unknown): error is Refusal =>
  error instanceof Refusal &&
  (error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ARGUMENT');
