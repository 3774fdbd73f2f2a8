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

/** Holds one call to the policy, takes it down once, and words what it fails with. */
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

  /** Refuses a call in another user's name, and one that a rule holds. */
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

  /** Returns what the client is told. */
  failed(error: unknown): ConnectError {
    if (!this.#isNoted) this.#deps.conduct.note(this.#conducted, error);
    this.#isNoted = true;
    if (isGone(error)) this.#call.gone = error as Error;
    return toldOf(error, this.#deps.log, this.#call.sandbox);
  }
}

/** Guards the calls that the library handles. */
export const guardCalls =
  (deps: GuardDeps): Interceptor =>
  (next) =>
  async (request) => {
    const call = request.contextValues.get(CALL);
    const operation = OPERATIONS[request.method.name];
    if (!call || !operation)
      throw new ConnectError(`${request.method.name} is not served here`, Code.Unimplemented);
    const guarded = new GuardedCall(deps, call, operation);
    /** The first message says that it was done. */
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
