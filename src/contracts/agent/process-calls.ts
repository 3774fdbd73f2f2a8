import type { Duplex } from 'node:stream';
import { ENDED_PROCESSES, LIVE_PROCESSES } from '../../model/process.ts';
import type { Clock } from '../clock.ts';
import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessGone,
  ProcessRefused,
} from '../processes.ts';
import { NotJoinable, OutcomeUnknown } from '../sandbox-driver.ts';
import { AgentAway, AgentCall, type AgentCallTerms } from './agent-call.ts';
import { PieceReader } from './process-pieces.ts';

export type AgentWay = Duplex & {
  readonly hold: (bytes: number) => void;
};

export interface ProcessCallsDeps<Target> {
  readonly open: (place: ProcessPlace<Target>) => Promise<AgentWay>;
  readonly names: (place: ProcessPlace<Target>) => readonly string[];
  readonly notBegun: (why: unknown) => unknown;
  /** Resolves with false, at once, during shutdown. */
  readonly pause: (ms: number) => Promise<boolean>;
  readonly clock: Clock;
}

export interface ProcessPlace<Target> {
  readonly target: Target;
  readonly processId?: string;
}

export interface ProcessQuestion {
  readonly tokens: readonly string[];
  readonly body?: Buffer;
  readonly limit?: number;
  /** An abort cancels only work that has not begun. */
  readonly unless?: AbortSignal;
  /** The call ends the process: if an earlier answer was lost, a missing process is a success. */
  readonly removes?: boolean;
}

/** Including the steps before and after, an answer takes at most 30 s. */
const WITHIN_MS = 25_000;
const LIMIT = 2 << 20;
/** A sandbox may send more records than it has processes. */
const MOST_RECORDS = 2 * (LIVE_PROCESSES + ENDED_PROCESSES);
export const MOST_TRIES = 6;
export const TRY_AGAIN_MS = 500;

/** The caller cancelled before anything was done. */
class TakenBack extends Error {}

/** Every question is repeatable, and is repeated if its answer is lost. */
export class ProcessCalls<Target> {
  readonly #deps: ProcessCallsDeps<Target>;

  constructor(deps: ProcessCallsDeps<Target>) {
    this.#deps = deps;
  }

  async begin(
    place: ProcessPlace<Target>,
    { tokens, body }: Pick<ProcessQuestion, 'tokens' | 'body'>,
    signal: AbortSignal,
  ): Promise<AgentCall> {
    const call = await this.#open(place, { tokens, body, signal });
    await call.head().catch((error: unknown) => {
      throw this.#notBegun(error);
    });
    return call;
  }

  /** Rejects with OutcomeUnknown after 25 s. */
  async ask(place: ProcessPlace<Target>, question: ProcessQuestion): Promise<readonly Buffer[]> {
    // Later attempts ignore `unless`: an earlier attempt may have taken effect.
    question.unless?.throwIfAborted();
    const stop = new AbortController();
    return await this.inTime(
      stop,
      (tries) =>
        this.#once(place, question, stop.signal).catch((error: unknown) => {
          const isDone = question.removes === true && tries > 1 && error instanceof ProcessGone;
          if (!isDone) throw error;
          return [];
        }),
      question.unless,
    );
  }

  /**
   * Retries while the outcome is unknown. Aborts `stop` after 25 s, which begin at the abort of
   * `unless` if it is given.
   */
  async inTime<T>(
    stop: AbortController,
    work: (tries: number) => Promise<T>,
    unless?: AbortSignal,
  ): Promise<T> {
    const { clock, pause } = this.#deps;
    let callOff = (): void => undefined;
    const wait = (): void => {
      callOff = clock.at(clock.now() + WITHIN_MS, () => {
        stop.abort(new OutcomeUnknown('the operation in the sandbox takes too long'));
      });
    };
    if (unless) unless.addEventListener('abort', wait, { once: true });
    else wait();
    try {
      for (let tries = 1; ; tries += 1)
        try {
          return await work(tries);
        } catch (error) {
          const isLost = error instanceof OutcomeUnknown && !stop.signal.aborted;
          if (!isLost || tries === MOST_TRIES || !(await pause(TRY_AGAIN_MS))) throw error;
        }
    } finally {
      unless?.removeEventListener('abort', wait);
      callOff();
    }
  }

  pause(ms: number): Promise<boolean> {
    return this.#deps.pause(ms);
  }

  async #once(
    place: ProcessPlace<Target>,
    { tokens, body, limit = LIMIT, unless }: ProcessQuestion,
    signal: AbortSignal,
  ): Promise<readonly Buffer[]> {
    const call = await this.#open(place, { tokens, body, signal });
    const takeBack = (): void => call.nudge();
    unless?.addEventListener('abort', takeBack, { once: true });
    if (unless?.aborted) takeBack();
    try {
      return await recordsOf(call, limit);
    } catch (error) {
      throw error instanceof TakenBack && unless ? unless.reason : this.#notBegun(error);
    } finally {
      unless?.removeEventListener('abort', takeBack);
    }
  }

  async #open(
    place: ProcessPlace<Target>,
    { tokens, ...terms }: Pick<AgentCallTerms, 'body' | 'signal'> & Pick<ProcessQuestion, 'tokens'>,
  ): Promise<AgentCall> {
    const [what = '', ...more] = tokens;
    const connection = await this.#deps.open(place);
    return new AgentCall({
      ...terms,
      connection,
      clock: this.#deps.clock,
      hold: (bytes) => connection.hold(bytes),
      refused: refusalOf,
      tokens: [what, ...this.#deps.names(place), ...more],
    });
  }

  #notBegun(error: unknown): unknown {
    return error instanceof AgentAway ? this.#deps.notBegun(error.cause ?? error) : error;
  }
}

const recordsOf = async (call: AgentCall, limit: number): Promise<readonly Buffer[]> => {
  await call.head();
  const reader = new PieceReader();
  const records: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of call.content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new OutcomeUnknown("the sandbox's answer is too large");
    call.hold(bytes);
    for (const piece of reader.push(chunk))
      if (piece.kind === 'record' && records.length < MOST_RECORDS) records.push(piece.record);
  }
  await call.answer();
  return records;
};

const refusalOf = (word: string): Error => {
  switch (word) {
    case 'not-found':
      return new ProcessGone('there is no such process');
    case 'ended':
      return new ProcessEnded('the process has ended');
    case 'closed':
      return new InputClosed(
        'the process takes no input: it was started without input, its input was closed, or it ' +
          'has ended',
      );
    case 'full':
      return new ProcessesFull('sandbox', `the sandbox has ${LIVE_PROCESSES} live processes`);
    case 'no-folder':
      return new ProcessRefused('cwd', 'the folder to start in does not exist');
    case 'no-terminal':
      return new ProcessRefused('tty', 'the process has no terminal, and cannot get one');
    case 'taken-back':
      return new TakenBack('the call was cancelled');
    case 'busy':
    case 'too-many':
      return new NotJoinable('too many operations of the sandbox are in progress; try again');
    default:
      return new OutcomeUnknown('the sandbox does not report the state of the process');
  }
};
