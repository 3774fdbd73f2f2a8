import { isUtf8 } from 'node:buffer';
import type { ProcessFact, ProcessOutput } from '../../../model/process.ts';
import type { ProcessFollow } from '../../../operations/processes/process-operations.ts';
import { refusalOf } from '../../router/error-table.ts';
import { EventStream, type ServerEvent } from '../../server/event-streams.ts';
import type { ProcessWire } from './schema.ts';

export const presentProcess = (fact: ProcessFact): ProcessWire => ({
  processId: fact.processId,
  pid: fact.pid,
  command: [...fact.argv],
  status: fact.status,
  ...(fact.exitCode === undefined ? {} : { exitCode: fact.exitCode }),
  ...(fact.signal === undefined ? {} : { signal: fact.signal }),
  startedAt: new Date(fact.startedAt).toISOString(),
  ...(fact.endedAt === undefined ? {} : { endedAt: new Date(fact.endedAt).toISOString() }),
  ...(fact.tag === undefined ? {} : { tag: fact.tag }),
  tty: fact.tty,
  stdin: fact.stdin,
});

/** The stream of a process's output; `first` of an answer to its start. */
export const presentOutput = (
  { fact, output, close }: ProcessFollow,
  first?: 'start',
): EventStream =>
  new EventStream(
    (signal) => eventsOf({ fact, events: output(signal), first, signal }),
    close,
    first === undefined ? 200 : 201,
  );

async function* eventsOf({
  fact,
  events,
  first,
  signal,
}: {
  readonly fact: ProcessFact;
  readonly events: AsyncIterable<ProcessOutput>;
  readonly first: 'start' | undefined;
  readonly signal: AbortSignal;
}): AsyncGenerator<ServerEvent, void, undefined> {
  if (first) yield { event: first, data: { process: presentProcess(fact) } };
  const cuts = { stdout: new Cut(), stderr: new Cut() };
  try {
    for await (const event of events) {
      if (event.kind === 'bytes')
        yield {
          id: event.next,
          event: event.stream,
          data: cuts[event.stream].present(event.bytes),
        };
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

/** Text where the bytes are UTF-8, else base64. */
class Cut {
  present(bytes: Buffer): { readonly data: string; readonly encoding?: 'base64' } {
    return isUtf8(bytes)
      ? { data: bytes.toString('utf8') }
      : { data: bytes.toString('base64'), encoding: 'base64' };
  }
}
