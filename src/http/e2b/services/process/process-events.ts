import { create, toJsonString, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { ProcessFact } from '../../../../model/process.ts';
import type { ProcessFollow } from '../../../../services/processes/process-operations.ts';
import { ProcessEvent_EndEventSchema, type ProcessEventSchema } from '../generated/process.ts';
import { SILENCE, withSilences, type SilenceTerms } from '../keepalives.ts';
import { frameOf } from '../rpc/frames.ts';

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

const NOTHING = Buffer.alloc(0);

/**
 * Cuts bytes into pieces of a length at most that end between two characters of UTF-8: some SDKs
 * decode each piece by itself. Bytes that are no text are cut anywhere. Pieces may share the memory
 * of what they were cut from.
 */
export class WholeCharacters {
  readonly #most: number;
  /** Begins a character whose end has not come: three bytes at most. */
  #begun: Buffer = NOTHING;

  constructor(most: number) {
    this.#most = most;
  }

  *pieces(bytes: Buffer): Generator<Buffer, void, undefined> {
    let left = this.#begun.length === 0 ? bytes : Buffer.concat([this.#begun, bytes]);
    while (left.length > this.#most) {
      const end = this.#most - begunAt(left.subarray(0, this.#most));
      yield left.subarray(0, end);
      left = left.subarray(end);
    }
    const end = left.length - begunAt(left);
    this.#begun = end === left.length ? NOTHING : Buffer.from(left.subarray(end));
    if (end > 0) yield left.subarray(0, end);
  }

  /** Yields what was held back, where there is something. */
  *rest(): Generator<Buffer, void, undefined> {
    if (this.#begun.length > 0) yield this.#begun;
    this.#begun = NOTHING;
  }
}

/** Returns how many bytes at the end begin a character that they do not end. */
const begunAt = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return lengthOf(byte) > back ? back : 0;
  }
  return 0;
};

const lengthOf = (first: number): number => {
  if (first >= 0xf8) return 1;
  if (first >= 0xf0) return 4;
  return first >= 0xe0 ? 3 : 2;
};
