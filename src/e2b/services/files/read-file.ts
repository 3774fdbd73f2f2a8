import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { invalidArgument, Refusal } from '../../../model/refusals.ts';
import type { Operations } from '../../../operations/operations.ts';
import type { UnreadAnswers } from '../../../http/limits/unread-answers.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { pathAsked } from './files-query.ts';
import { targetAt, type Homes } from './homes.ts';

export interface ReadFileDeps {
  readonly operations: Pick<Operations, 'openFile'>;
  readonly homes: Homes;
  readonly unread: UnreadAnswers;
}

/** Answers `GET /files`: the bytes of a file. */
export const readFile = async (
  { operations, homes, unread }: ReadFileDeps,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  sandbox: AddressedSandbox,
): Promise<void> => {
  const path = pathAsked(request);
  if (path === '') throw invalidArgument('path', 'is required');
  const { path: found } = await homes.place(sandbox, path);
  const opened = await asFile(() =>
    operations.openFile(sandbox.caller, targetAt(sandbox, found), { as: 'file' }, sandbox.signal),
  );
  const { content } = opened;
  const length = opened.kind === 'file' ? opened.end - opened.start : 0;
  response.writeHead(200, {
    'Content-Type': 'application/octet-stream',
    'Content-Length': length,
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': 'sandbox',
  });
  unread.watch(response);
  try {
    await pipeline(content, response);
  } catch {
    // Its client left, or must not take what it has for the whole.
    response.destroy();
  }
};

/** A folder, a device: what is there is not what was asked for, and that is the caller's fault. */
export const asFile = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'CONFLICT')
      throw invalidArgument('path', error.message);
    throw error;
  }
};
