import { create, toJsonString, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { ProcessFact } from '../../../../model/process.ts';
import type { ProcessFollow } from '../../../../services/processes/process-operations.ts';
import { ProcessEvent_EndEventSchema, type ProcessEventSchema } from '../generated/process.ts';
import { SILENCE, withSilences, type SilenceTerms } from '../keepalives.ts';
import { frameOf } from '../rpc/frames.ts';
import { WholeCharacters } from './whole-characters.ts';

type Told = { readonly event: MessageInitShape<typeof ProcessEventSchema> };
type Stream = 'stdout' | 'stderr' | 'pty';

export interface EventTerms extends SilenceTerms {
  readonly signal: AbortSignal;
  /** Milliseconds after which the process is killed, which is told as the stream's own end. */
  readonly timeoutMs?: number;
  /** Resolves with what a stream ends with whose sandbox has ended; undefined while it runs. */
  readonly endOfSandbox: () => Promise<ConnectError | undefined>;
}

const PIECE = 32 << 10;
const TTY_PIECE = 16 << 10;
const ROUNDING_MS = 10;

/** Returns the first message of a process's stream. */
export const startOf = ({ pid }: ProcessFact): Told => ({
  event: { event: { case: 'start', value: { pid } } },
});

/**
 * Yields the frames behind the start: what the process prints, in pieces that end between
 * characters where it is text, and its end; and that it is alive where it is silent. They are made
 * by hand, as there may be many of them: the JSON of a `ProcessEvent`, whichever call it answers.
 */
export async function* processFrames(
  { fact: { tty }, output }: Pick<ProcessFollow, 'fact' | 'output'>,
  { signal, timeoutMs, endOfSandbox, ...silences }: EventTerms,
): AsyncGenerator<Buffer, void, undefined> {
  const most = tty ? TTY_PIECE : PIECE;
  const texts = { stdout: new WholeCharacters(most), stderr: new WholeCharacters(most) };
  for await (const item of withSilences(output(signal), silences)) {
    if (item === SILENCE) yield KEEPALIVE;
    else if (item.kind === 'bytes')
      for (const piece of texts[item.stream].pieces(item.bytes))
        yield dataFrame(tty ? 'pty' : item.stream, piece);
    else if (item.kind === 'end') {
      if (isTimedOut(item.fact, timeoutMs)) throw timedOut();
      const gone = isEndedByOthers(item.fact) ? await endOfSandbox() : undefined;
      for (const stream of ['stdout', 'stderr'] as const)
        for (const piece of texts[stream].rest()) yield dataFrame(tty ? 'pty' : stream, piece);
      if (gone) throw gone;
      yield endFrame(item.fact);
      return;
    }
  }
  signal.throwIfAborted();
}

const KEEPALIVE = frameOf('{"event":{"keepalive":{}}}');

const dataFrame = (stream: Stream, bytes: Buffer): Buffer =>
  frameOf(`{"event":{"data":{"${stream}":"${bytes.toString('base64')}"}}}`);

const endFrame = (fact: ProcessFact): Buffer => {
  const end = create(ProcessEvent_EndEventSchema, endOf(fact));
  return frameOf(`{"event":{"end":${toJsonString(ProcessEvent_EndEventSchema, end)}}}`);
};

const timedOut = (): ConnectError =>
  new ConnectError('the process was killed at its timeout', Code.DeadlineExceeded);

/** A process may end with the same code by itself, but not at that time. */
const isTimedOut = (
  { exitCode, startedAt, endedAt = startedAt }: ProcessFact,
  timeoutMs = Infinity,
): boolean => exitCode === 124 && endedAt - startedAt >= timeoutMs - ROUNDING_MS;

/** A shell says by its code that what it ran was ended by a signal. */
const isEndedByOthers = ({ signal, exitCode = 0 }: ProcessFact): boolean =>
  signal !== undefined || exitCode > SIGNALLED;
const SIGNALLED = 128;

/** Names the signals as programs of E2B expect them to be named. */
const KILLED: Readonly<Record<string, string>> = { KILL: 'killed', TERM: 'terminated' };

const endOf = ({ exitCode = 0, signal = '', outOfMemory }: ProcessFact) => {
  const killed = KILLED[signal];
  if (killed !== undefined) {
    const status = `signal: ${killed}`;
    const error = outOfMemory ? `${status} (the sandbox ran out of memory)` : status;
    return { exitCode: -1, exited: false, status, error };
  }
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, error: exitCode === 0 ? undefined : status };
};
