import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  createConnectRouter,
  createContextValues,
  type ConnectError,
  type ConnectRouter,
  type HandlerContext,
} from '@connectrpc/connect';
import type { UniversalHandler, UniversalServerResponse } from '@connectrpc/connect/protocol';
import type { Clock } from '../../../../contracts/clock.ts';
import type { Log } from '../../../../contracts/log.ts';
import type { Admission } from '../../../limits/admission.ts';
import { roomOf } from '../../../limits/memory.ts';
import { thenLinger } from '../../../corridor/linger.ts';
import { Refusal, unavailable } from '../../../../model/refusals.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import type { Conduct } from '../conduct.ts';
import { isOfCall, pathOf, readCall, readMessages, STREAM_TYPE } from './read-call.ts';
import { badArgument } from './rpc-errors.ts';
import {
  CALL,
  guardCalls,
  GuardedCall,
  toldOf,
  type Call,
  type FramesToCome,
} from './call-guard.ts';
import { lastFrame } from './frames.ts';
import {
  MOST_MS,
  STREAM_HEAD,
  TIMEOUT,
  type PlainOpening,
  type PlainStream,
} from './plain-streams.ts';

export interface RpcDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly admission: Pick<Admission, 'arriving' | 'answers' | 'unread' | 'bounds' | 'parse'>;
  readonly conduct: Conduct;
}

export interface RpcServer {
  readonly takes: (path: string) => boolean;
  /** Rejects without sending anything if the sandbox is gone or the request is not a call. */
  readonly answer: (
    request: IncomingMessage,
    response: ServerResponse,
    sandbox: AddressedSandbox,
  ) => Promise<void>;
  /** Ends current and future streams with `unavailable`. */
  readonly endStreams: () => void;
}

const JSON_TYPE = /^application\/(connect\+)?json\b/i;
const COMPRESSED = 1;
const MESSAGE_BYTES = 1 << 20;

export const callOf = ({ values }: Pick<HandlerContext, 'values'>): Call => {
  const call = values.get(CALL);
  if (!call) throw new Error('a call without a sandbox');
  return call;
};

export const sandboxOf = (context: Pick<HandlerContext, 'values'>): AddressedSandbox =>
  callOf(context).sandbox;

/**
 * Connect RPC over HTTP/1.1. Calls in the SDKs' form bypass the library, which allocates 50 KiB per
 * stream.
 */
export const rpcServer = (
  deps: RpcDeps,
  streams: readonly PlainStream[],
  serve: (router: ConnectRouter) => void,
): RpcServer => {
  const router = createConnectRouter({
    grpc: false,
    grpcWeb: false,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES,
    maxTimeoutMs: MOST_MS,
    interceptors: [guardCalls(deps)],
  });
  serve(router);
  const handlers = new Map(router.handlers.map((each) => [each.requestPath, each]));
  const plain = new Map(streams.map((each) => [each.path, each]));
  const open = new OpenStreams();
  const serveCall = async (asked: Asked): Promise<void> => {
    const { response, sandbox } = asked;
    const rest = await begin(deps, asked);
    if (rest) await sendRest(deps, response, { ...rest, sandbox });
    if (!response.destroyed) response.end();
  };
  return {
    takes: (path) => handlers.has(path),
    answer: async (request, response, sandbox) => {
      const handler = handlers.get(pathOf(request));
      if (!handler) throw new Error(`no such call: ${pathOf(request)}`);
      const type = request.headers['content-type'] ?? '';
      if (!JSON_TYPE.test(type))
        throw new Refusal('UNSUPPORTED_MEDIA_TYPE', 'calls and their answers must be JSON');
      const stream = plain.get(pathOf(request));
      const asked = { handler, stream, request, response, sandbox };
      if (!STREAM_TYPE.test(type)) return await serveCall(asked);
      await open.within(sandbox.signal, (signal) =>
        serveCall({ ...asked, sandbox: { ...sandbox, signal } }),
      );
    },
    endStreams: () => open.stop(),
  };
};

interface Asked {
  readonly handler: UniversalHandler;
  readonly stream: PlainStream | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly sandbox: AddressedSandbox;
}

const begin = async (deps: RpcDeps, asked: Asked): Promise<FramesToCome | undefined> => {
  const { handler, request, response, stream, sandbox } = asked;
  if (handler.method.methodKind === 'client_streaming')
    return await thenLinger({ req: request, res: response }, () =>
      beginByLibrary(deps, asked, readMessages(request, response, { ...deps, sandbox })),
    );
  const body = await readCall(request, response, { ...deps, sandbox }).catch((error: unknown) => {
    if (!isOfCall(error)) throw error;
    refuseCall(asked, error);
  });
  if (body === undefined) return undefined;
  const opening = stream?.opening(request, body);
  if (opening) return await beginPlainly(deps, opening, asked);
  return await beginByLibrary(deps, asked, body);
};

/** Clients would read 413 as a rate limit and retry. */
const refuseCall = ({ request, response }: Asked, { message }: Refusal): void => {
  const error = badArgument(message);
  const { 'content-type': type = '' } = request.headers;
  if (STREAM_TYPE.test(type))
    return void response.writeHead(200, STREAM_HEAD).write(lastFrame(error));
  const body = JSON.stringify({ code: 'invalid_argument', message });
  response.writeHead(400, { 'content-type': 'application/json' }).write(body);
};

/** Keeps none of the library's objects. */
const beginByLibrary = async (
  deps: RpcDeps,
  { handler, request, response, sandbox }: Asked,
  body: Buffer | AsyncIterable<Uint8Array>,
): Promise<FramesToCome | undefined> => {
  const call = callFor(deps, response, sandbox);
  try {
    const answer = await handled(handler, { request, body, call, path: pathOf(request) });
    if (call.gone !== undefined || response.destroyed) {
      await answer.body?.[Symbol.asyncIterator]().return?.();
      if (call.gone !== undefined) throw call.gone;
      call.goesOn?.close();
      return undefined;
    }
    const { status, header, body: pieces } = longAs(answer, call);
    response.writeHead(status, Object.fromEntries(header ?? []));
    if (pieces) await send(deps, response, call.goesOn ? firstOf(pieces) : pieces);
    return call.goesOn;
  } catch (error) {
    call.goesOn?.close();
    throw error;
  }
};

const callFor = (deps: RpcDeps, response: ServerResponse, sandbox: AddressedSandbox): Call => {
  const room = roomOf(response, deps.admission.answers, sandbox.caller);
  return { sandbox, room, permitProcess: unguarded };
};

const beginPlainly = async (
  deps: RpcDeps,
  { operation, timeoutMs, open }: PlainOpening,
  { request: { headers }, response, sandbox }: Asked,
): Promise<FramesToCome | undefined> => {
  const { clock } = deps;
  const call = callFor(deps, response, sandbox);
  const guarded = new GuardedCall(deps, call, operation);
  const endsAt = timeoutMs === undefined ? undefined : clock.now() + timeoutMs;
  try {
    guarded.permit(headers.authorization);
    const { first, rest } = await open({
      call,
      leftMs: () => (endsAt === undefined ? undefined : endsAt - clock.now()),
      header: (name) => (headers[name] === undefined ? null : String(headers[name])),
    });
    guarded.done();
    if (!response.destroyed) {
      response.writeHead(200, STREAM_HEAD).write(first);
      return rest;
    }
    rest.close();
  } catch (error) {
    const told = guarded.failed(error);
    if (call.gone !== undefined) throw call.gone;
    if (!response.destroyed) response.writeHead(200, STREAM_HEAD).write(lastFrame(told));
  }
  return undefined;
};

async function* firstOf<T>(pieces: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  for await (const piece of pieces) {
    yield piece;
    return;
  }
}

const longAs = (answer: UniversalServerResponse, { longJson }: Call): UniversalServerResponse => {
  if (!longJson || answer.status !== 200) return answer;
  const header = new Headers(answer.header);
  header.delete('content-length');
  return { ...answer, header, body: longJson };
};

const unguarded = (): never => {
  throw new Error('a call that nothing guards');
};

interface Arrived {
  readonly request: IncomingMessage;
  readonly body: Buffer | AsyncIterable<Uint8Array>;
  readonly call: Call;
  readonly path: string;
}

const handled = (
  handler: UniversalHandler,
  { request, body, call, path }: Arrived,
): Promise<UniversalServerResponse> => {
  const header = headersOf(request);
  // A timer would treat this delay as zero.
  if (Number(header.get(TIMEOUT) ?? 0) > MOST_MS) header.set(TIMEOUT, 'too long');
  return handler({
    httpVersion: request.httpVersion,
    method: request.method ?? 'POST',
    url: `http://sandbox${path}`,
    header,
    body: Buffer.isBuffer(body) ? framed(body, header) : body,
    signal: call.sandbox.signal,
    contextValues: createContextValues().set(CALL, call),
  });
};

const headersOf = ({ headers }: IncomingMessage): Headers => {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) all.set(name, String(value));
  return all;
};

async function* framed(body: Buffer, header: Headers): AsyncGenerator<Uint8Array, void, undefined> {
  const isStream = header.get('content-type')?.startsWith('application/connect+');
  if (isStream && ((body[0] ?? 0) & COMPRESSED) !== 0)
    throw badArgument('messages must not be compressed');
  yield body;
}

const send = async (
  deps: RpcDeps,
  response: ServerResponse,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> => {
  for await (const piece of pieces) {
    if (response.destroyed) return;
    if (!response.write(piece)) await drained(deps, response);
  }
};

const sendRest = async (
  deps: RpcDeps,
  response: ServerResponse,
  { frames, close, sandbox }: FramesToCome & Pick<Call, 'sandbox'>,
): Promise<void> => {
  let failure: ConnectError | undefined;
  try {
    await send(deps, response, frames);
  } catch (error) {
    failure = toldOf(error, deps.log, sandbox);
  } finally {
    close();
  }
  if (!response.destroyed) response.write(lastFrame(failure));
};

/** Disconnects a client that reads nothing for too long. */
const drained = ({ clock, log, admission }: RpcDeps, response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const settle = (): void => {
      cancel();
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    const cancel = clock.at(clock.now() + admission.bounds.answerStallMs, () => {
      log.info({ why: 'stalled', bytes: response.writableLength }, 'unread-answer-cut');
      response.destroy();
      settle();
    });
    response.once('drain', settle).once('close', settle);
  });

/** Ends streams with `unavailable`, so that clients reconnect to another replica. */
class OpenStreams {
  readonly #open = new Set<AbortController>();
  #isStopping = false;

  async within<T>(client: AbortSignal, serve: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const ending = new AbortController();
    const leave = (): void => ending.abort(client.reason);
    client.addEventListener('abort', leave, { once: true });
    if (client.aborted) leave();
    this.#open.add(ending);
    if (this.#isStopping) end(ending);
    try {
      return await serve(ending.signal);
    } finally {
      this.#open.delete(ending);
      client.removeEventListener('abort', leave);
    }
  }

  stop(): void {
    this.#isStopping = true;
    for (const each of this.#open) end(each);
  }
}

const end = (stream: AbortController): void =>
  stream.abort(unavailable('the daemon is stopping; connect again'));
