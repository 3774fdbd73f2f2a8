import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import { isTooDeep } from '../passed-answer.ts';

/** The longest event of a cluster, which is cut off where it sends longer ones. */
const MOST_EVENT_CHARACTERS = 65_536;

/** One event of a cluster's stream. */
export interface ClusterEvent {
  /** Absent: `message`. */
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: object;
}

/**
 * Reads the events of a cluster until its stream ends, no faster than they are taken. Throws where
 * it sends what is none, or one that is too long.
 */
export async function* readClusterEvents(
  answer: IncomingMessage,
): AsyncGenerator<ClusterEvent, void, undefined> {
  const read: ClusterEvent[] = [];
  let failure: Error | undefined;
  const parser = createParser({
    maxBufferSize: MOST_EVENT_CHARACTERS,
    onEvent: ({ event, id, data }) => {
      const value: unknown = JSON.parse(data);
      if (typeof value !== 'object' || value === null || isTooDeep(value))
        throw new Error('the cluster sent no event');
      read.push({ event, id, data: value });
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') failure = error; // else a word that is unknown
    },
  });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* read.splice(0);
      if (failure) throw failure;
    }
  } finally {
    answer.destroy();
  }
}
