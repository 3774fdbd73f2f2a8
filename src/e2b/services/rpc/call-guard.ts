import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import { createContextKey } from '@connectrpc/connect';
import type { Log } from '../../../contracts/log.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import type { AnswerRoom } from '../../../operations/sandboxes/answer-budget.ts';
import type { Conduct, Conducted, ServedOperation } from '../conduct.ts';
import { requireUser, userOf } from '../user.ts';
import { isGone, rpcErrorOf } from './rpc-errors.ts';

export interface Call {
  readonly sandbox: AddressedSandbox;
  /** Returns its room in the budget for answers, which is given back when the response is over. */
  readonly room: () => AnswerRoom;
  /** Refuses a call of one process, once that is known, where a rule holds it. */
  permitProcess: (processId: string) => void;
  /** Takes the place of the message of an answer that is long: its JSON, made piece by piece. */
  longJson?: AsyncIterable<Uint8Array>;
  /** Is what comes behind the first message of a stream, where the call makes it itself. */
  goesOn?: FramesToCome;
  /** Says, once it is known, that the sandbox is gone. */
  gone?: Error;
}

/** The frames of a stream but for its first and last ones. */
export interface FramesToCome {
  /** To be read once. What it fails with is told in the last frame. */
  readonly frames: AsyncIterable<Buffer>;
  /** Whether it was read or not; may be repeated. */
  readonly close: () => void;
}

export const CALL = createContextKey<Call | undefined>(undefined);

/** Names the operation that each call stands for. */
export const OPERATIONS: Readonly<Record<string, ServedOperation>> = {
  Start: 'startProcess',
  Connect: 'followProcess',
  List: 'listProcesses',
  SendInput: 'writeToProcess',
  CloseStdin: 'writeToProcess',
  SendSignal: 'signalProcess',
  Update: 'resizeProcess',
  Stat: 'listFiles',
  ListDir: 'listFiles',
  MakeDir: 'makeFolder',
  Move: 'moveFile',
  Remove: 'removeFile',
  WatchDir: 'watchFiles',
  CreateWatcher: 'watchFiles',
  GetWatcherEvents: 'watchFiles',
  RemoveWatcher: 'watchFiles',
};

/** Holds each call to the policy, takes it down, and words what it fails with. */
export const guardCalls =
  ({ conduct, log }: { readonly conduct: Conduct; readonly log: Log }): Interceptor =>
  (next) =>
  async (request) => {
    const call = request.contextValues.get(CALL);
    const operation = OPERATIONS[request.method.name];
    if (!call || !operation)
      throw new ConnectError(`${request.method.name} is not served here`, Code.Unimplemented);
    const { sandbox } = call;
    let conducted: Conducted = { sandbox, operation };
    call.permitProcess = (processId) => {
      conducted = { ...conducted, processId };
      conduct.permit(conducted);
    };
    const failed = (error: unknown): ConnectError => {
      if (isGone(error)) call.gone = error as Error;
      return toldOf(error, log, sandbox);
    };
    /** The first message says that it was done. */
    async function* each<T>(messages: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
      let isNoted = false;
      try {
        for await (const message of messages) {
          if (!isNoted) conduct.note(conducted);
          isNoted = true;
          yield message;
        }
      } catch (error) {
        if (!isNoted) conduct.note(conducted, error);
        throw failed(error);
      }
    }
    try {
      requireUser(userOf(request.header.get('authorization')));
      if (!conduct.isOfProcess(operation)) conduct.permit(conducted);
      const answer = await next(request);
      if (answer.stream) return { ...answer, message: each(answer.message) };
      conduct.note(conducted);
      return answer;
    } catch (error) {
      conduct.note(conducted, error);
      throw failed(error);
    }
  };

/** Returns what a client is told of an error, and logs one that is the daemon's fault. */
export const toldOf = (
  error: unknown,
  log: Log,
  { requestId }: Pick<AddressedSandbox, 'requestId'>,
): ConnectError => {
  const told = rpcErrorOf(error);
  if (told) return told;
  log.error({ error, requestId }, 'request failed');
  return new ConnectError('internal error', Code.Internal);
};
