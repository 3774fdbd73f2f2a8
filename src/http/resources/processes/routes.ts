import { SandboxPath } from '../sandboxes/schema.ts';
import { INPUT_BYTES } from '../../../model/process.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { Operations } from '../../../services/operations.ts';
import type { StartProcessRequest } from '../../../services/processes/process-operations.ts';
import { created, ok, route, type Route } from '../../corridor/route.ts';
import { presentOutput, presentProcess } from './presenter.ts';
import {
  OutputQuery,
  ProcessBody,
  ProcessDeletion,
  ProcessEnvelope,
  ProcessEvent,
  ProcessList,
  ProcessPath,
  SignalBody,
  SizeBody,
  StdinBody,
} from './schema.ts';

const OF_SANDBOX = [
  'SANDBOX_NOT_FOUND',
  'SANDBOX_NOT_RUNNING',
  'FEATURE_DISABLED',
  'UNAVAILABLE',
] as const;
const OF_PROCESS = [...OF_SANDBOX, 'PROCESS_NOT_FOUND'] as const;

const DEFAULT_SIZE = { cols: 80, rows: 24 };

export const processRoutes = (operations: Operations): readonly Route[] => [
  startProcess(operations),
  listProcesses(operations),
  getProcess(operations),
  followProcess(operations),
  writeToProcess(operations),
  signalProcess(operations),
  resizeProcess(operations),
  deleteProcess(operations),
];

const startProcess = (operations: Operations): Route =>
  route({
    operationId: 'startProcess',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/processes',
    access: 'tenant',
    summary: 'Start a process',
    params: SandboxPath,
    body: ProcessBody,
    query: OutputQuery.pick({ pace: true, encoding: true }),
    answers: { 201: ProcessEnvelope },
    media: { also: ['text/event-stream'] },
    effect: { kind: 'unkeyed' },
    waits: true,
    refusals: [...OF_SANDBOX, 'TOO_MANY_PROCESSES', 'TOO_MANY_COMMANDS'],
    handle: async ({
      caller,
      params: { sandboxId },
      body,
      query,
      incoming: { header, accepts },
    }) => {
      const request = startRequest(body, header('idempotency-key'));
      if (accepts('application/json', 'text/event-stream') === 'application/json')
        return created({
          process: presentProcess(await operations.startProcess(caller, sandboxId, request)),
        });
      const follow = await operations.runProcess(caller, sandboxId, {
        ...request,
        pace: query.pace ?? false,
        from: header('last-event-id'),
      });
      return created(presentOutput(follow, { first: 'start', encoding: query.encoding }));
    },
  });

const listProcesses = (operations: Operations): Route =>
  route({
    operationId: 'listProcesses',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/processes',
    access: 'tenant',
    summary: 'List the processes of a sandbox',
    params: SandboxPath,
    answers: { 200: ProcessList },
    refusals: OF_SANDBOX,
    handle: async ({ caller, params: { sandboxId } }) => {
      const items = (await operations.listProcesses(caller, sandboxId)).map(presentProcess);
      return ok({ items, total: items.length });
    },
  });

const getProcess = (operations: Operations): Route =>
  route({
    operationId: 'getProcess',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/processes/{processId}',
    access: 'tenant',
    summary: 'Get a process',
    params: ProcessPath,
    answers: { 200: ProcessEnvelope },
    refusals: OF_PROCESS,
    handle: async ({ caller, params: { sandboxId, processId } }) =>
      ok({ process: presentProcess(await operations.getProcess(caller, sandboxId, processId)) }),
  });

const followProcess = (operations: Operations): Route =>
  route({
    operationId: 'followProcess',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/processes/{processId}/output',
    access: 'tenant',
    summary: 'Read the output of a process, or follow it',
    params: ProcessPath,
    query: OutputQuery,
    answers: { 200: ProcessEvent },
    media: { only: 'text/event-stream' },
    waits: true,
    refusals: [...OF_PROCESS, 'TOO_MANY_STREAMS'],
    handle: async ({ caller, params: { sandboxId, processId }, query, incoming: { header } }) =>
      ok(
        presentOutput(
          await operations.followProcess(caller, sandboxId, {
            processId,
            from: header('last-event-id') ?? query.from,
            pace: query.pace ?? false,
          }),
          { encoding: query.encoding },
        ),
      ),
  });

const writeToProcess = (operations: Operations): Route =>
  route({
    operationId: 'writeToProcess',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/processes/{processId}/stdin',
    access: 'tenant',
    summary: 'Send input to a process, or close its input',
    params: ProcessPath,
    body: StdinBody,
    answers: { 200: ProcessEnvelope },
    effect: { kind: 'unkeyed' },
    waits: true,
    refusals: [...OF_PROCESS, 'INPUT_CLOSED', 'CONFLICT', 'TOO_MANY_COMMANDS'],
    handle: async ({ caller, params: { sandboxId, processId }, body }) => {
      const bytes = inputOf(body.data ?? '', body.encoding ?? 'utf8');
      const last = body.close ?? false;
      if (bytes.length === 0 && !last) throw invalidArgument('data', 'is required without close');
      const input = { processId, bytes, last };
      return ok({
        process: presentProcess(await operations.writeToProcess(caller, sandboxId, input)),
      });
    },
  });

const signalProcess = (operations: Operations): Route =>
  route({
    operationId: 'signalProcess',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/processes/{processId}/signal',
    access: 'tenant',
    summary: 'Signal a process',
    params: ProcessPath,
    body: SignalBody,
    answers: { 200: ProcessEnvelope },
    effect: { kind: 'unkeyed' },
    refusals: [...OF_PROCESS, 'PROCESS_ENDED'],
    handle: async ({ caller, params: { sandboxId, processId }, body }) => {
      const request = { processId, name: body.signal };
      return ok({
        process: presentProcess(await operations.signalProcess(caller, sandboxId, request)),
      });
    },
  });

const resizeProcess = (operations: Operations): Route =>
  route({
    operationId: 'resizeProcess',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/processes/{processId}/resize',
    access: 'tenant',
    summary: 'Resize the terminal of a process',
    params: ProcessPath,
    body: SizeBody,
    answers: { 200: ProcessEnvelope },
    effect: { kind: 'unkeyed' },
    refusals: [...OF_PROCESS, 'PROCESS_ENDED'],
    handle: async ({ caller, params: { sandboxId, processId }, body: { cols, rows } }) => {
      const request = { processId, cols, rows };
      return ok({
        process: presentProcess(await operations.resizeProcess(caller, sandboxId, request)),
      });
    },
  });

const deleteProcess = (operations: Operations): Route =>
  route({
    operationId: 'deleteProcess',
    method: 'DELETE',
    path: '/sandboxes/{sandboxId}/processes/{processId}',
    access: 'tenant',
    summary: 'Kill a process and delete it',
    params: ProcessPath,
    answers: { 200: ProcessDeletion },
    refusals: OF_PROCESS,
    handle: async ({ caller, params: { sandboxId, processId } }) => {
      await operations.deleteProcess(caller, sandboxId, processId);
      return ok({ processId, status: 'deleted' });
    },
  });

type Body = ReturnType<typeof ProcessBody.parse>;

const startRequest = (body: Body, key: string | undefined): StartProcessRequest => {
  const { command, cwd, env, tty = false, cols, rows, stdin = false } = body;
  if (!tty && (cols ?? rows) !== undefined)
    throw invalidArgument(cols === undefined ? 'rows' : 'cols', 'is only allowed with tty');
  return {
    argv: typeof command === 'string' ? ['/bin/sh', '-c', command] : command,
    cwd,
    env,
    stdin,
    tty: tty ? { cols: cols ?? DEFAULT_SIZE.cols, rows: rows ?? DEFAULT_SIZE.rows } : undefined,
    timeoutMs: body.timeoutSeconds === undefined ? undefined : body.timeoutSeconds * 1_000,
    tag: body.tag,
    container: body.container,
    key,
  };
};

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const inputOf = (data: string, encoding: 'utf8' | 'base64'): Buffer => {
  if (encoding === 'base64' && (!BASE64.test(data) || data.length % 4 !== 0))
    throw invalidArgument('data', 'is not base64');
  const bytes = Buffer.from(data, encoding);
  if (bytes.length > INPUT_BYTES)
    throw invalidArgument('data', `must have at most ${INPUT_BYTES} bytes`);
  return bytes;
};
