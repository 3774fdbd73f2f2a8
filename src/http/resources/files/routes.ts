import { filePathOf } from '../../../model/file-path.ts';
import type { FileTarget, OpenedContent } from '../../../services/files/file-operations.ts';
import type { Operations } from '../../../services/operations.ts';
import { EventStream } from '../../reply/event-streams.ts';
import { StreamedAnswer } from '../../reply/streamed-answer.ts';
import { created, ok, route, type Answer, type Route } from '../../corridor/route.ts';
import { SandboxPath } from '../sandboxes/schema.ts';
import { isKnown, rangeOf, wantsRange, writeConditions } from './conditions.ts';
import { fileTag, presentFile, presentFileEvents, presentFiles } from './presenter.ts';
import {
  FileContent,
  FileDeletion,
  FileEnvelope,
  FileEventInfo,
  FileList,
  ListFilesQuery,
  MakeFolderBody,
  MoveFileBody,
  ReadFileQuery,
  RemoveFileQuery,
  WatchFilesQuery,
  WriteFileQuery,
  WrittenEnvelope,
} from './schema.ts';

const PATH = '/sandboxes/{sandboxId}/files';
const TAR = 'application/x-tar';
const BYTES = 'application/octet-stream';

const COMMON = [
  'SANDBOX_NOT_FOUND',
  'SANDBOX_NOT_RUNNING',
  'FILE_NOT_FOUND',
  'FORBIDDEN',
  'CONFLICT',
  'TOO_MANY_STREAMS',
  'FEATURE_DISABLED',
  'UNAVAILABLE',
] as const;

export const fileRoutes = (operations: Operations): readonly Route[] => [
  readFile(operations),
  writeFile(operations),
  removeFile(operations),
  listFiles(operations),
  moveFile(operations),
  makeFolder(operations),
  watchFiles(operations),
];

const readFile = (operations: Operations): Route =>
  route({
    operationId: 'readFile',
    method: 'GET',
    path: PATH,
    access: 'tenant',
    summary: 'Read a file, or a folder as an archive',
    params: SandboxPath,
    query: ReadFileQuery,
    answers: { 200: FileContent, 206: FileContent },
    media: { only: BYTES, also: [TAR] },
    refusals: [...COMMON, 'PRECONDITION_FAILED', 'RANGE_NOT_SATISFIABLE'],
    waits: true,
    handle: async ({ caller, params, query, incoming: { header }, signal }) => {
      const target = targetOf(params.sandboxId, query);
      const as = wantedOf(header('accept'));
      const aborted = signal();
      const range = rangeOf(header('range'));
      const open = (part: typeof range): Promise<OpenedContent> =>
        operations.openFile(caller, target, { as, range: part, signal: aborted });
      let opened = await open(range);
      if (opened.kind === 'file' && range && !wantsRange(opened.stat, header)) {
        opened.content.destroy();
        opened = await open(undefined);
      }
      return contentAnswer(opened, header);
    },
  });

const writeFile = (operations: Operations): Route =>
  route({
    operationId: 'writeFile',
    method: 'PUT',
    path: PATH,
    access: 'tenant',
    summary: 'Write a file, or unpack an archive into a folder',
    params: SandboxPath,
    query: WriteFileQuery,
    media: { takes: [BYTES, TAR] },
    answers: { 200: WrittenEnvelope, 201: WrittenEnvelope },
    refusals: [
      ...COMMON,
      'ALREADY_EXISTS',
      'PRECONDITION_FAILED',
      'UNSUPPORTED_MEDIA_TYPE',
      'NO_SPACE',
    ],
    waits: true,
    handle: async ({ caller, params, query, incoming: { header, content }, signal }) => {
      const target = targetOf(params.sandboxId, query);
      const conditions = writeConditions(header, query.overwrite ?? true);
      if (/^application\/x-tar\b/i.test(header('content-type') ?? '')) {
        const tree = await operations.unpackFiles(caller, target, {
          archive: content(),
          signal: signal(),
        });
        return ok({ archive: { entries: tree.entries, bytes: tree.bytes } });
      }
      const written = await operations.writeFile(caller, target, {
        ...conditions,
        parents: query.parents ?? false,
        mode: query.mode,
        content: content(),
        signal: signal(),
      });
      const answer = { file: presentFile(target.path, written.stat) };
      return {
        ...(written.created ? created(answer) : ok(answer)),
        headers: { ETag: fileTag(written.stat) },
      };
    },
  });

const removeFile = (operations: Operations): Route =>
  route({
    operationId: 'removeFile',
    method: 'DELETE',
    path: PATH,
    access: 'tenant',
    summary: 'Remove a file or a folder',
    params: SandboxPath,
    query: RemoveFileQuery,
    answers: { 200: FileDeletion },
    refusals: COMMON,
    waits: true,
    handle: async ({ caller, params, query, signal }) => {
      const target = targetOf(params.sandboxId, query);
      const request = { recursive: query.recursive ?? false };
      await operations.removeFile(caller, target, { ...request, signal: signal() });
      return ok({ path: query.path, status: 'deleted' });
    },
  });

const listFiles = (operations: Operations): Route =>
  route({
    operationId: 'listFiles',
    method: 'GET',
    path: `${PATH}/list`,
    access: 'tenant',
    summary: 'List a folder',
    params: SandboxPath,
    query: ListFilesQuery,
    answers: { 200: FileList },
    refusals: COMMON,
    handle: async ({ caller, params, query, signal }) => {
      const target = targetOf(params.sandboxId, query);
      const { depth, limit, cursor } = query;
      const request = { depth, limit, cursor };
      return ok(
        presentFiles(
          target.path,
          await operations.listFiles(caller, target, { ...request, signal: signal() }),
        ),
      );
    },
  });

const moveFile = (operations: Operations): Route =>
  route({
    operationId: 'moveFile',
    method: 'POST',
    path: `${PATH}/move`,
    access: 'tenant',
    summary: 'Rename a file or a folder',
    params: SandboxPath,
    body: MoveFileBody,
    answers: { 200: FileEnvelope },
    effect: { kind: 'unkeyed' },
    refusals: [...COMMON, 'ALREADY_EXISTS'],
    handle: async ({ caller, params, body, signal }) => {
      const form = body.base64 === true ? 'base64' : 'text';
      const { container } = body;
      const target = {
        sandboxId: params.sandboxId,
        path: filePathOf('from', body.from, form),
        container,
      };
      const to = filePathOf('to', body.to, form);
      const request = { to, overwrite: body.overwrite ?? false };
      const stat = await operations.moveFile(caller, target, { ...request, signal: signal() });
      return ok({ file: presentFile(to, stat) });
    },
  });

const makeFolder = (operations: Operations): Route =>
  route({
    operationId: 'makeFolder',
    method: 'POST',
    path: `${PATH}/mkdir`,
    access: 'tenant',
    summary: 'Create a folder',
    params: SandboxPath,
    body: MakeFolderBody,
    answers: { 200: FileEnvelope, 201: FileEnvelope },
    effect: { kind: 'unkeyed' },
    refusals: [...COMMON, 'ALREADY_EXISTS', 'NO_SPACE'],
    handle: async ({ caller, params, body, signal }) => {
      const target = targetOf(params.sandboxId, body);
      const request = { parents: body.parents ?? false, mode: body.mode };
      const made = await operations.makeFolder(caller, target, { ...request, signal: signal() });
      const answer = { file: presentFile(target.path, made.stat) };
      return made.created ? created(answer) : ok(answer);
    },
  });

const watchFiles = (operations: Operations): Route =>
  route({
    operationId: 'watchFiles',
    method: 'GET',
    path: `${PATH}/watch`,
    access: 'tenant',
    summary: 'Follow the changes in a folder',
    params: SandboxPath,
    query: WatchFilesQuery,
    answers: { 200: FileEventInfo },
    media: { only: 'text/event-stream' },
    refusals: COMMON,
    handle: async ({ caller, params, query }) => {
      const target = targetOf(params.sandboxId, query);
      const request = { recursive: query.recursive ?? false };
      const { events, close } = await operations.watchFiles(caller, target, request);
      return ok(new EventStream((signal) => presentFileEvents(events(signal)), close));
    },
  });

const targetOf = (
  sandboxId: string,
  {
    path,
    base64,
    container,
  }: { readonly path: string; readonly base64?: boolean; readonly container?: string },
): FileTarget => ({
  sandboxId,
  path: filePathOf('path', path, base64 === true ? 'base64' : 'text'),
  container,
});

/** `*` gets a file; a client that accepts both types gets either. */
const wantedOf = (accept = '*/*'): 'file' | 'tree' | 'either' => {
  if (!accept.includes(TAR)) return 'file';
  return accept.includes(BYTES) ? 'either' : 'tree';
};

const contentAnswer = (
  opened: OpenedContent,
  header: (name: string) => string | undefined,
): Answer => {
  const { content } = opened;
  const body = new StreamedAnswer(content);
  if (opened.kind === 'tree') return { status: 200, body, headers: { 'Content-Type': TAR } };
  const { stat, start, end } = opened;
  const headers = {
    'Content-Type': BYTES,
    ETag: fileTag(stat),
    'Accept-Ranges': 'bytes',
    'X-File-Mode': stat.mode.toString(8).padStart(4, '0'),
  };
  try {
    if (isKnown(stat, header)) return { status: 304, body, headers: { ETag: headers.ETag } };
  } catch (error) {
    content.destroy();
    throw error;
  }
  const length = { 'Content-Length': String(end - start) };
  if (end - start === stat.size) return { status: 200, body, headers: { ...headers, ...length } };
  const part = { 'Content-Range': `bytes ${start}-${end - 1}/${stat.size}` };
  return { status: 206, body, headers: { ...headers, ...length, ...part } };
};
