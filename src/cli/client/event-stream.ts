import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { ActorTransition, Event, ProcessEnvelope } from './generated/api.ts';

interface Nothing {}

interface ProcessEvents {
  readonly start: ProcessEnvelope;
  readonly stdout: ProcessOutput;
  readonly stderr: ProcessOutput;
  /** The process printed faster than the reader read. */
  readonly dropped: { readonly bytes?: number };
  readonly error: { readonly error: string };
  readonly end: ProcessEnvelope;
}

interface ProcessOutput {
  readonly data: string;
  /** If absent, `data` is the text itself. */
  readonly encoding?: 'base64';
}

/** The data of each stream's events, by the names of the events. */
interface Streams {
  readonly startProcess: ProcessEvents;
  readonly followProcess: ProcessEvents;
  readonly getSandboxLogs: {
    readonly message: {
      readonly line: string;
      readonly timestamp?: string;
      readonly partial?: boolean;
    };
    /** Some lines before the next one were dropped. */
    readonly reset: Nothing;
    /** The sandbox has ended; no more lines follow. */
    readonly end: Nothing;
  };
  readonly followEvents: {
    /** The position of the stream's first byte. */
    readonly begin: Nothing;
    readonly message: Event;
    /** Some events before the next one were dropped, of that cluster if one is named. */
    readonly reset: { readonly clusterID?: string };
    /** The manager has lost the cluster's events, or receives them again. */
    readonly cluster: { readonly clusterID: string; readonly incomplete: boolean };
  };
  readonly followActor: {
    /** The replica whose view follows. */
    readonly 'seen-by': { readonly replica: string; readonly note?: string };
    readonly message: ActorTransition;
    /** Some transitions before the next one were dropped. */
    readonly reset: Nothing;
    /** The actor has ended. */
    readonly end: Nothing;
  };
}

export type StreamId = keyof Streams;

/** One event. A reader resumes after `id`, which is empty if the service sent none. */
export type StreamEvent<K extends StreamId> = {
  [T in keyof Streams[K]]: {
    readonly type: T;
    readonly id: string;
    readonly data: Streams[K][T];
  };
}[keyof Streams[K]];

/**
 * Yields the events of an answer until it ends, with back-pressure. `broken` throws for an error of
 * the connection.
 */
export async function* readEvents<K extends StreamId>(
  response: IncomingMessage,
  broken: (error: unknown) => never,
): AsyncGenerator<StreamEvent<K>, void, undefined> {
  const received: StreamEvent<K>[] = [];
  const parser = createParser({
    onEvent: ({ event = 'message', id = '', data }) =>
      void received.push({ type: event, id, data: JSON.parse(data) } as StreamEvent<K>),
  });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* received.splice(0);
    }
  } catch (error) {
    broken(error);
  } finally {
    response.destroy();
  }
}
