import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import { createContextKey } from '@connectrpc/connect';
import type { Log } from '../../../../contracts/log.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import type { AnswerRoom } from '../../../../actors/sandbox/commands/answer-budget.ts';
import type { Conduct, Conducted, ServedOperation } from '../conduct.ts';
import { requireUser, userOf } from '../user.ts';
import { isGone, rpcErrorOf } from './rpc-errors.ts';

export interface Call {
  readonly sandbox: AddressedSandbox;
  readonly room: () => AnswerRoom;
  permitProcess: (processId: string) => void;
  longJson?: AsyncIterable<Uint8Array>;
  /** A stream's frames after the first message, if the call writes them itself. */
  goesOn?: FramesToCome;
  gone?: Error;
}

export interface FramesToCome {
  /** Read only once. The last frame reports an error. */
  readonly frames: AsyncIterable<Buffer>;
  /** Closes the stream, read or unread. May be repeated. */
  readonly close: () => void;
}

export const CALL = createContextKey<Call | undefined>(undefined);

export const OPERATIONS: Readonly<Record<string, ServedOperation>> = {
  Start: 'startProcess',
  Connect: 'followProcess',
  List: 'listProcesses',
  SendInput: 'writeToProcess',
  StreamInput: 'writeToProcess',
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

export interface GuardDeps {
  readonly conduct: Conduct;
  readonly log: Log;
}

/** Checks one call against the rules, audits it once, and translates its errors. */
export class GuardedCall {
  readonly #deps: GuardDeps;
  readonly #call: Call;
  #conducted: Conducted;
  #isNoted = false;

  constructor(deps: GuardDeps, call: Call, operation: ServedOperation) {
    this.#deps = deps;
    this.#call = call;
    this.#conducted = { sandbox: call.sandbox, operation };
    call.permitProcess = (processId) => {
      this.#conducted = { ...this.#conducted, processId };
      deps.conduct.permit(this.#conducted);
    };
  }

  /** Refuses another user, and a call that a rule holds. */
  permit(authorization: string | null | undefined): void {
    const { conduct } = this.#deps;
    requireUser(userOf(authorization));
    if (!conduct.isOfProcess(this.#conducted.operation)) conduct.permit(this.#conducted);
  }

  /** May be repeated. */
  done(): void {
    if (!this.#isNoted) this.#deps.conduct.note(this.#conducted);
    this.#isNoted = true;
  }

  failed(error: unknown): ConnectError {
    if (!this.#isNoted) this.#deps.conduct.note(this.#conducted, error);
    this.#isNoted = true;
    if (isGone(error)) this.#call.gone = error as Error;
    return toldOf(error, this.#deps.log, this.#call.sandbox);
  }
}

export const guardCalls =
  (deps: GuardDeps): Interceptor =>
  (next) =>
  async (request) => {
    const call = request.contextValues.get(CALL);
    const operation = OPERATIONS[request.method.name];
    if (!call || !operation)
      throw new ConnectError(`${request.method.name} is not supported here`, Code.Unimplemented);
    const guarded = new GuardedCall(deps, call, operation);
    /** Audits success at the first message. */
    async function* each<T>(messages: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
      try {
        for await (const message of messages) {
          guarded.done();
          yield message;
        }
      } catch (error) {
        throw guarded.failed(error);
      }
    }
    try {
      guarded.permit(request.header.get('authorization'));
      const answer = await next(request);
      if (answer.stream) return { ...answer, message: each(answer.message) };
      guarded.done();
      return answer;
    } catch (error) {
      throw guarded.failed(error);
    }
  };

/** Logs a fault of the daemon. */
export const toldOf = (
  error: unknown,
  log: Log,
  { requestId }: Pick<AddressedSandbox, 'requestId'>,
): ConnectError => {
  const told = rpcErrorOf(error);
  if (told) return told;
  log.error({ error, requestId }, 'request-failed');
  return new ConnectError('internal error', Code.Internal);
};
