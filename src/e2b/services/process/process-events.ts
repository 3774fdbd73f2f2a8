import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Clock } from '../../../contracts/clock.ts';
import type { ProcessFact } from '../../../model/process.ts';
import type { ProcessFollow } from '../../../operations/processes/process-operations.ts';
import type { ProcessEventSchema } from '../generated/process.ts';
import { SILENCE, withSilences } from '../keepalives.ts';
import { WholeCharacters } from './whole-characters.ts';

type Told = { readonly event: MessageInitShape<typeof ProcessEventSchema> };
type Stream = 'stdout' | 'stderr' | 'pty';

export interface EventTerms {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly signal: AbortSignal;
  /** Milliseconds after which the process is killed, which is told as the stream's own end. */
  readonly timeoutMs?: number | undefined;
}

const PIECE = 32 << 10;
const TTY_PIECE = 16 << 10;
const ROUNDING_MS = 10;

/**
 * Yields the start of a process, what it prints in pieces that end between characters where it is
 * text, and its end; and that it is alive where it is silent. Closes the reading.
 */
export async function* processEvents(
  follow: ProcessFollow,
  { clock, everyMs, signal, timeoutMs }: EventTerms,
): AsyncGenerator<Told, void, undefined> {
  try {
    const { pid, tty } = follow.fact;
    yield { event: { event: { case: 'start', value: { pid } } } };
    const most = tty ? TTY_PIECE : PIECE;
    const texts = { stdout: new WholeCharacters(most), stderr: new WholeCharacters(most) };
    for await (const item of withSilences(follow.output(signal), clock, everyMs)) {
      if (item === SILENCE) yield { event: { event: { case: 'keepalive', value: {} } } };
      else if (item.kind === 'bytes')
        for (const piece of texts[item.stream].pieces(item.bytes))
          yield dataOf(tty ? 'pty' : item.stream, piece);
      else if (item.kind === 'end') {
        if (isTimedOut(item.fact, timeoutMs)) throw timedOut();
        for (const stream of ['stdout', 'stderr'] as const)
          for (const piece of texts[stream].rest()) yield dataOf(tty ? 'pty' : stream, piece);
        yield { event: { event: { case: 'end', value: endOf(item.fact) } } };
        return;
      }
    }
    signal.throwIfAborted();
  } finally {
    follow.close();
  }
}

const timedOut = (): ConnectError =>
  new ConnectError('the process was killed at its timeout', Code.DeadlineExceeded);

/** A process may end with the same code by itself, but not at that time. */
const isTimedOut = (
  { exitCode, startedAt, endedAt = startedAt }: ProcessFact,
  timeoutMs = Infinity,
): boolean => exitCode === 124 && endedAt - startedAt >= timeoutMs - ROUNDING_MS;

const dataOf = (stream: Stream, value: Uint8Array<ArrayBuffer>): Told => ({
  event: { event: { case: 'data', value: { output: { case: stream, value } } } },
});

/** Names the signals as programs of E2B expect them to be named. */
const KILLED: Readonly<Record<string, string>> = { KILL: 'killed', TERM: 'terminated' };

const endOf = ({ exitCode = 0, signal = '' }: ProcessFact) => {
  const killed = KILLED[signal];
  if (killed !== undefined) {
    const status = `signal: ${killed}`;
    return { exitCode: -1, exited: false, status, error: status };
  }
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, ...(exitCode === 0 ? {} : { error: status }) };
};
