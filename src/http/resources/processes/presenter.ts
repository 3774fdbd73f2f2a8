import { isUtf8 } from 'node:buffer';
import type { ProcessFact, ProcessOutput } from '../../../model/process.ts';
import type { ProcessFollow } from '../../../services/processes/process-operations.ts';
import { refusalOf } from '../../reply/error-table.ts';
import { AsciiJson, EventStream, type ServerEvent } from '../../reply/event-streams.ts';
import type { ProcessWire } from './schema.ts';

export const presentProcess = (fact: ProcessFact): ProcessWire => ({
  processId: fact.processId,
  pid: fact.pid,
  command: [...fact.argv],
  status: fact.status,
  exitCode: fact.exitCode,
  signal: fact.signal,
  oomKilled: fact.outOfMemory,
  startedAt: new Date(fact.startedAt).toISOString(),
  endedAt: fact.endedAt === undefined ? undefined : new Date(fact.endedAt).toISOString(),
  tag: fact.tag,
  tty: fact.tty,
  stdin: fact.stdin,
});

interface OutputTerms {
  readonly first?: 'start';
  /** Absent for text if possible. */
  readonly encoding: 'base64' | undefined;
}

export const presentOutput = (
  { fact, output, close }: ProcessFollow,
  { first, encoding }: OutputTerms,
): EventStream => {
  const present = encoding === undefined ? textOrBase64 : base64;
  return new EventStream(
    async function* (signal) {
      if (first) yield { event: first, data: { process: presentProcess(fact) } };
      yield* eventsOf(output(signal), present, signal);
    },
    close,
    first === undefined ? 200 : 201,
  );
};

type PresentBytes = (bytes: Buffer) => ServerEvent['data'];

async function* eventsOf(
  output: AsyncIterable<ProcessOutput>,
  present: PresentBytes,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent, void, undefined> {
  try {
    for await (const event of output) {
      if (event.kind === 'bytes')
        yield { id: event.next, event: event.stream, data: present(event.bytes) };
      else yield presentEvent(event);
    }
  } catch (error) {
    const refusal = refusalOf(error);
    if (!refusal || signal.aborted) throw error;
    yield { event: 'error', data: { error: refusal.message, errorCode: refusal.code } };
  }
}

const presentEvent = (event: Exclude<ProcessOutput, { kind: 'bytes' }>): ServerEvent =>
  event.kind === 'end'
    ? { id: event.next, event: 'end', data: { process: presentProcess(event.fact) } }
    : {
        id: event.next,
        event: 'dropped',
        data: event.bytes === undefined ? {} : { bytes: event.bytes },
      };

/** JSON escapes a NUL to six characters, so text with NUL is sent as base64. */
const textOrBase64: PresentBytes = (bytes) =>
  isUtf8(bytes) && !bytes.includes(0) ? { data: bytes.toString('utf8') } : base64(bytes);

/** Skips JSON escaping, which base64 never needs. */
const base64: PresentBytes = (bytes) =>
  new AsciiJson(`{"data":"${bytes.toString('base64')}","encoding":"base64"}`);
