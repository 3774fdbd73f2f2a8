import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { ActorTransition, Event, ProcessEnvelope } from './generated/api.ts';

interface Nothing {}

/** A process, from its start to its end. */
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
  /** Absent: `data` is the text itself. */
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
    /** Something before the next line is no longer kept. */
    readonly reset: Nothing;
    /** The sandbox has ended, and this was all. */
    readonly end: Nothing;
  };
  readonly followEvents: {
    /** Where the stream begins. */
    readonly begin: Nothing;
    readonly message: Event;
    /** Events before the next one, of that cluster if one is named, are no longer known. */
    readonly reset: { readonly clusterID?: string };
    /** The manager doesn't receive the cluster's events, or does again. */
    readonly cluster: { readonly clusterID: string; readonly incomplete: boolean };
  };
  readonly followActor: {
    /** Whose view follows. */
    readonly 'seen-by': { readonly replica: string; readonly note?: string };
    readonly message: ActorTransition;
    /** Moves before the next one are no longer known. */
    readonly reset: Nothing;
    /** The actor has ended. */
    readonly end: Nothing;
  };
}

export type StreamId = keyof Streams;

/** One event. `id` is where a reader that comes again goes on; empty if the service named none. */
export type StreamEvent<K extends StreamId> = {
  [T in keyof Streams[K]]: {
    readonly type: T;
    readonly id: string;
    readonly data: Streams[K][T];
  };
}[keyof Streams[K]];

/**
 * The events of an answer, until it ends, read no faster than they are taken. `broken` throws for
 * an error of the connection.
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
