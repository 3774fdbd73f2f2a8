import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';

/** One Server-Sent Event, its data parsed. */
export interface ReceivedEvent {
  /** `message` where the service named none. */
  readonly event: string;
  readonly id: string | undefined;
  readonly data: unknown;
}

/**
 * The events of an answer, until it ends. Reads no faster than they are taken. Throws where the
 * connection breaks.
 */
export async function* readServerEvents(
  response: IncomingMessage,
): AsyncGenerator<ReceivedEvent, void, undefined> {
  const received: ReceivedEvent[] = [];
  const parser = createParser({
    onEvent: ({ event = 'message', id, data }) => {
      received.push({ event, id, data: JSON.parse(data) });
    },
  });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* received.splice(0);
    }
  } finally {
    response.destroy();
  }
}
