import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { ActorTransition, Event, ProcessEnvelope } from './generated/api.ts';

interface Nothing {}

interface ProcessEvents {
  readonly start: ProcessEnvelope;
  readonly stdout: ProcessOutput;
  readonly stderr: ProcessOutput;
  /** The process printed faster than it was read. */
  readonly dropped: { readonly bytes?: number };
  readonly error: { readonly error: string };
  readonly end: ProcessEnvelope;
}

interface ProcessOutput {
  readonly data: string;
  /** If absent, `data` is the text itself. */
  readonly encoding?: 'base64';
}

interface Streams {
  readonly startProcess: ProcessEvents;
  readonly followProcess: ProcessEvents;
  readonly getSandboxLogs: {
    readonly message: {
      readonly line: string;
      readonly timestamp?: string;
      readonly partial?: boolean;
    };
    /** Lines were dropped. */
    readonly reset: Nothing;
    /** The sandbox has ended. */
    readonly end: Nothing;
  };
  readonly followEvents: {
    /** Position of the first byte. */
    readonly begin: Nothing;
    readonly message: Event;
    /** Events were dropped, of that cluster if one is named. */
    readonly reset: { readonly clusterID?: string };
    /** The manager lost the cluster's events, or receives them again. */
    readonly cluster: { readonly clusterID: string; readonly incomplete: boolean };
  };
  readonly followActor: {
    /** The replica whose view follows. */
    readonly 'seen-by': { readonly replica: string; readonly note?: string };
    readonly message: ActorTransition;
    /** Transitions were dropped. */
    readonly reset: Nothing;
    readonly end: Nothing;
  };
}

export type StreamId = keyof Streams;

/** Empty if the service sent none. */
export type StreamEvent<K extends StreamId> = {
  [T in keyof Streams[K]]: {
    readonly type: T;
    readonly id: string;
    readonly data: Streams[K][T];
  };
}[keyof Streams[K]];

/** Yields events with back-pressure. `broken` throws for an error of the connection. */
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
