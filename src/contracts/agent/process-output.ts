import { OutcomeUnknown } from '../sandbox-driver.ts';
import { ProcessGone, type OutputRequest } from '../processes.ts';
import type { AgentCall } from './agent-call.ts';
import type { ProcessFact, ProcessOutput } from '../../model/process.ts';
import { MOST_TRIES, TRY_AGAIN_MS, type ProcessCalls, type ProcessPlace } from './process-calls.ts';
import { PieceReader, type ProcessPiece } from './process-pieces.ts';
import { readProcess } from './process-record.ts';

const POSITION = /^\d{1,15}$/;

export interface BegunReading {
  readonly pieces: AsyncGenerator<ProcessPiece, void, undefined>;
  readonly leave: () => void;
}

export interface OutputTerms extends OutputRequest {
  readonly signal: AbortSignal;
  readonly begun?: BegunReading;
}

/** If the link is lost, continues by another call from the last position. */
export async function* followOutput<Target>(
  calls: ProcessCalls<Target>,
  place: ProcessPlace<Target>,
  { from, pace, signal, begun, positioned }: OutputTerms,
): AsyncGenerator<ProcessOutput, void, undefined> {
  const reading = new Reading(calls, place, { pace, positioned });
  if (begun) reading.position = 0;
  let begin = from !== undefined && (from === 'latest' || POSITION.test(from)) ? from : undefined;
  for (let tries = 1; !signal.aborted; tries += 1) {
    try {
      for await (const piece of reading.once(begin, signal, tries === 1 ? begun : undefined)) {
        tries = 1;
        yield piece;
        if (piece.kind === 'end') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof OutcomeUnknown)) throw error;
    }
    if (tries >= MOST_TRIES) throw new OutcomeUnknown('the rest of the output could not be read');
    if (reading.position !== undefined) begin = String(reading.position);
    if (signal.aborted || !(await calls.pause(TRY_AGAIN_MS))) return;
  }
}

class Reading<Target> {
  position: number | undefined;
  readonly #calls: ProcessCalls<Target>;
  readonly #place: ProcessPlace<Target>;
  readonly #request: Pick<OutputRequest, 'pace' | 'positioned'>;

  constructor(
    calls: ProcessCalls<Target>,
    place: ProcessPlace<Target>,
    request: Pick<OutputRequest, 'pace' | 'positioned'>,
  ) {
    this.#calls = calls;
    this.#place = place;
    this.#request = request;
  }

  async *once(
    from: string | undefined,
    signal: AbortSignal,
    begun: BegunReading | undefined,
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    const tokens = [
      'output',
      ...(from === undefined ? [] : ['from', from]),
      ...(this.#request.pace ? ['pace', '1'] : []),
    ];
    const leave = begun?.leave ?? ((): void => undefined);
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    let fact: ProcessFact | undefined;
    try {
      const pieces =
        begun?.pieces ?? piecesOf(await this.#calls.begin(this.#place, { tokens }, signal));
      for await (const piece of pieces) {
        if (piece.kind === 'record') fact = factIn(piece.record);
        else if (piece.kind !== 'wants') yield* this.#take(piece);
      }
    } finally {
      signal.removeEventListener('abort', leave);
    }
    if (fact) yield { kind: 'end', fact, next: String(this.position ?? 0) };
  }

  *#take(piece: Exclude<ProcessPiece, { kind: 'record' | 'wants' }>): Iterable<ProcessOutput> {
    if (piece.kind === 'begins') {
      this.position = piece.at;
      this.#request.positioned?.();
      return;
    }
    const position = this.position ?? 0;
    const end = piece.at + piece.bytes.length;
    if (end <= position) return;
    if (piece.at > position)
      yield { kind: 'dropped', bytes: piece.at - position, next: String(piece.at) };
    const bytes = Buffer.from(piece.bytes.subarray(Math.max(position - piece.at, 0)));
    this.position = end;
    yield { kind: 'bytes', stream: piece.stream, bytes, next: String(end) };
  }
}

/** Consumed bytes after which a paced reader requests as many again. */
const TAKEN_BYTES = 64 << 10;

export async function* piecesOf(call: AgentCall): AsyncGenerator<ProcessPiece, void, undefined> {
  const reader = new PieceReader();
  let taken = 0;
  for await (const chunk of call.content as AsyncIterable<Buffer>)
    for (const piece of reader.push(chunk)) {
      yield piece;
      if (piece.kind === 'bytes') taken += piece.bytes.length;
      for (; taken >= TAKEN_BYTES; taken -= TAKEN_BYTES) call.nudge();
    }
  await call.answer();
}

const factIn = (record: Buffer): ProcessFact => {
  const fact = readProcess(record);
  if (!fact) throw new ProcessGone('the record of the process cannot be read');
  return fact;
};
