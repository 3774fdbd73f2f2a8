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
  /** In ms; reported as the end of the stream. */
  readonly timeoutMs?: number;
  readonly endOfSandbox: () => Promise<ConnectError | undefined>;
}

const PIECE = 32 << 10;
const TTY_PIECE = 16 << 10;
const ROUNDING_MS = 10;

export const startOf = ({ pid }: ProcessFact): Told => ({
  event: { event: { case: 'start', value: { pid } } },
});

/** Writes the JSON of a `ProcessEvent` by hand for speed. */
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

/** The process's own exit code may be the same, but not at that time. */
const isTimedOut = (
  { exitCode, startedAt, endedAt = startedAt }: ProcessFact,
  timeoutMs = Infinity,
): boolean => exitCode === 124 && endedAt - startedAt >= timeoutMs - ROUNDING_MS;

/** A shell reports a signal by its exit code. */
const isEndedByOthers = ({ signal, exitCode = 0 }: ProcessFact): boolean =>
  signal !== undefined || exitCode > SIGNALLED;
const SIGNALLED = 128;

/** Names that E2B's programs expect. */
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
 * Some SDKs decode each piece on its own, so text is cut only between UTF-8 characters. Pieces may
 * share memory with their input.
 */
export class WholeCharacters {
  readonly #most: number;
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

  *rest(): Generator<Buffer, void, undefined> {
    if (this.#begun.length > 0) yield this.#begun;
    this.#begun = NOTHING;
  }
}

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
