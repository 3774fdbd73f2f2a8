import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { rangeOf } from '../../../resources/files/conditions.ts';
import type { OpenedContent } from '../../../../services/files/file-operations.ts';
import { invalidArgument, Refusal } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { UnreadAnswers } from '../../../limits/memory.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { pathAsked } from './files-query.ts';
import { targetAt, type Homes } from './homes.ts';

export interface ReadFileDeps {
  readonly operations: Pick<Operations, 'openFile'>;
  readonly homes: Homes;
  readonly unread: UnreadAnswers;
}

export const readFile = async (
  { operations, homes, unread }: ReadFileDeps,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  sandbox: AddressedSandbox,
): Promise<void> => {
  const path = pathAsked(request);
  if (path === '') throw invalidArgument('path', 'is required');
  const { path: found } = await homes.place(sandbox, path);
  const { range: asked, 'if-range': condition } = request.headers;
  // Answers lack a version, so no condition can match.
  const range = condition === undefined ? rangeOf(asked) : undefined;
  const order = { as: 'file', range, signal: sandbox.signal } as const;
  const opened = await asFile(() =>
    operations.openFile(sandbox.caller, targetAt(sandbox, found), order),
  );
  const { content } = opened;
  response.writeHead(range ? 206 : 200, {
    ...lengthsOf(opened, range !== undefined),
    'Content-Type': 'application/octet-stream',
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': 'sandbox',
  });
  if (request.method === 'HEAD') {
    content.destroy();
    response.end();
    return;
  }
  unread.watch(response);
  try {
    await pipeline(content, response);
  } catch {
    // The client must not take a part for the whole.
    response.destroy();
  }
};

const lengthsOf = (opened: OpenedContent, isPart: boolean): Readonly<Record<string, string>> => {
  if (opened.kind !== 'file') return { 'Content-Length': '0' };
  const { start, end, stat } = opened;
  const part = { 'Content-Range': `bytes ${start}-${end - 1}/${stat.size}` };
  return { 'Content-Length': String(end - start), ...(isPart ? part : {}) };
};

export const asFile = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'CONFLICT')
      throw invalidArgument('path', error.message);
    throw error;
  }
};
