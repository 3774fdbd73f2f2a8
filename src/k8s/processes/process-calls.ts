import type { Duplex } from 'node:stream';
import { AgentAway, AgentCall, type AgentCallTerms } from '../../contracts/agent/agent-call.ts';
import type { Clock } from '../../contracts/clock.ts';
import { NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessesNotProvided,
  ProcessGone,
  ProcessRefused,
} from '../../contracts/processes.ts';
import { ENDED_PROCESSES, LIVE_PROCESSES } from '../../model/process.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { NoAgent } from '../streams/no-agent.ts';
import { PieceReader } from './process-pieces.ts';

/** A way to an agent, as `AgentStream`. */
export type AgentWay = Duplex & {
  /** Counts bytes that are held of what came; throws where they are too many. */
  readonly hold: (bytes: number) => void;
};

export interface ProcessCallsDeps {
  readonly openAgent: (pod: PodTarget) => Promise<AgentWay>;
  /** Resolves with false, at once, where all ends. */
  readonly pause: (ms: number) => Promise<boolean>;
  readonly clock: Clock;
}

/** Says where it is asked, and about which process, if it is about one. */
export interface ProcessPlace {
  readonly target: PodTarget;
  readonly processId?: string;
}

export interface ProcessQuestion {
  /** Says what to do, then names and values in turn. */
  readonly tokens: readonly string[];
  readonly body?: Buffer;
  /** Bytes of the answer; more is a failure. */
  readonly limit?: number;
  /** An abort takes back what has not been done yet; else it takes as long as it may. */
  readonly unless?: AbortSignal;
  /** Ends the process: that it is gone is as well, where an earlier answer was lost. */
  readonly removes?: boolean;
}

/** With what comes before and after, an answer takes 30 s at most. */
const WITHIN_MS = 25_000;
const LIMIT = 2 << 20;
/** Records of an answer that are kept; the sandbox can say more than there are processes. */
const MOST_RECORDS = 2 * (LIVE_PROCESSES + ENDED_PROCESSES);
/** Bounds the tries of a question whose answer is lost, and says the time between two. */
export const MOST_TRIES = 6;
export const TRY_AGAIN_MS = 500;

/** Says that nothing was done, since the caller did not want it any more. */
class TakenBack extends Error {}

/**
 * Asks the agents in Pods about processes. Every question may be asked again: so it is, where its
 * answer is lost.
 */
export class ProcessCalls {
  readonly #deps: ProcessCallsDeps;

  constructor(deps: ProcessCallsDeps) {
    this.#deps = deps;
  }

  /** Begins one call, once. Resolves when the agent has taken it. */
  async begin(
    place: ProcessPlace,
    { tokens, body }: Pick<ProcessQuestion, 'tokens' | 'body'>,
    signal: AbortSignal,
  ): Promise<AgentCall> {
    const call = await this.#open(place, { tokens, body, signal });
    await call.head().catch((error: unknown) => {
      throw notBegun(error);
    });
    return call;
  }

  /** Resolves with the records that are said. Rejects with OutcomeUnknown after 25 s. */
  async ask(place: ProcessPlace, question: ProcessQuestion): Promise<readonly Buffer[]> {
    // Later tries go on: an earlier one may have done it.
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
   * Does it again while its outcome is unknown. Aborts `stop` after 25 s; with `unless` no sooner
   * than so long after that does.
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
        stop.abort(new OutcomeUnknown('what was begun in the sandbox takes too long'));
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

  /** As `ProcessCallsDeps.pause`. */
  pause(ms: number): Promise<boolean> {
    return this.#deps.pause(ms);
  }

  async #once(
    place: ProcessPlace,
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
      throw error instanceof TakenBack && unless ? unless.reason : notBegun(error);
    } finally {
      unless?.removeEventListener('abort', takeBack);
    }
  }

  async #open(
    { target, processId }: ProcessPlace,
    { tokens, ...terms }: Pick<AgentCallTerms, 'body' | 'signal'> & Pick<ProcessQuestion, 'tokens'>,
  ): Promise<AgentCall> {
    const [what = '', ...more] = tokens;
    const connection = await this.#deps.openAgent(target);
    return new AgentCall({
      ...terms,
      connection,
      clock: this.#deps.clock,
      hold: (bytes) => connection.hold(bytes),
      refused: refusalOf,
      tokens: [
        what,
        ...['room', roomOf(target)],
        ...(processId === undefined ? [] : ['process', processId]),
        ...more,
      ],
    });
  }
}

const recordsOf = async (call: AgentCall, limit: number): Promise<readonly Buffer[]> => {
  await call.head();
  const reader = new PieceReader();
  const records: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of call.content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new OutcomeUnknown('the sandbox answers more than it may');
    call.hold(bytes);
    for (const piece of reader.push(chunk))
      if (piece.kind === 'record' && records.length < MOST_RECORDS) records.push(piece.record);
  }
  await call.answer();
  return records;
};

/** Names what no other Pod has: containers of a Pod share the names of their processes. */
const roomOf = ({ uid }: PodTarget): string => uid.replaceAll(/[^\w]/g, '').slice(0, LONGEST_ROOM);
const LONGEST_ROOM = 32;

/** The error of a way on which no agent has taken the request. */
const notBegun = (error: unknown): unknown => {
  const why = error instanceof AgentAway ? (error.cause ?? error) : error;
  return why instanceof NoAgent ? new ProcessesNotProvided(`${why.message}; use exec`) : why;
};

const refusalOf = (word: string): Error => {
  switch (word) {
    case 'not-found':
      return new ProcessGone('there is no such process');
    case 'ended':
      return new ProcessEnded('the process has ended');
    case 'closed':
      return new InputClosed(
        'the process takes no input: it has none, has closed it, or has ended',
      );
    case 'full':
      return new ProcessesFull('sandbox', `${LIVE_PROCESSES} processes of the sandbox are live`);
    case 'no-folder':
      return new ProcessRefused('cwd', 'there is no such folder to start in');
    case 'no-terminal':
      return new ProcessRefused('tty', 'the process has no terminal, and can be given none');
    case 'taken-back':
      return new TakenBack('it was taken back');
    case 'busy':
    case 'too-many':
      return new NotJoinable('too much is being done in the sandbox; try again');
    default:
      return new OutcomeUnknown('the sandbox does not say what became of it');
  }
};
