import { clusterUnavailable } from '../../../model/fleet/cluster-refusals.ts';
import type { WayToCluster } from '../../replication/fleet-operations.ts';
import type { Answer } from '../../../http/corridor/route.ts';
import { EventStream, type ServerEvent } from '../../../http/reply/event-streams.ts';
import { isPosition, positionsIn, positionsText } from '../../../model/fleet/cluster-positions.ts';
import { namedByQuery } from '../../../http/corridor/stages/named-cluster.ts';
import { itemInFleet } from '../fleet-names.ts';
import type { FleetDeps } from '../fleet-router.ts';
import type { MergedTerms } from './gathered.ts';
import { targetOf } from '../pass-on.ts';
import { LAST_EVENT_ID } from '../passed-headers.ts';
import { once, setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { createParser } from 'eventsource-parser';
import { isTooDeep } from '../passed-answer.ts';

/** Reading pauses beyond it. */
const MOST_QUEUED = 32;
const LOOK_MS = 1_000;
const BEGIN_MS = 10_000;

interface Heard {
  readonly clusterId: string;
  readonly what: ClusterEvent | 'missing' | 'back';
}

/**
 * Streams the events of all clusters. An event id holds a position per cluster, so a client that
 * reconnects misses nothing. A cluster whose stream was down resumes at its position, or with a
 * `reset` if it no longer has it.
 */
export const mergedEvents = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { request } = terms;
  const { fleet, passing } = deps;
  const named = namedByQuery(request.query);
  if (named !== undefined && named !== fleet.clusterId) passing.wayTo(fleet, named); // or refuse
  const after = request.incoming.header(LAST_EVENT_ID);
  const positions = after === undefined ? undefined : positionsIn(after);
  const ownPosition = positions?.get(fleet.clusterId);
  const own = await terms.own({
    query: { ...(request.query as object), begin: true },
    incoming: {
      ...request.incoming,
      header: (name) => (name === LAST_EVENT_ID ? ownPosition : request.incoming.header(name)),
    },
  });
  if (!(own.body instanceof EventStream)) throw new Error('the answer is not a stream');
  const { events, closed } = own.body;
  return {
    status: 200,
    body: new EventStream(
      (signal) =>
        new MergedEvents(deps, terms, {
          named,
          own: events,
          positions: positions ?? new Map<string, string>(),
          from: after === undefined ? 'now' : positions ? 'positions' : 'unknown',
        }).events(signal),
      closed,
    ),
  };
};

interface StreamTerms {
  readonly named: string | undefined;
  readonly own: EventStream['events'];
  readonly positions: Map<string, string>;
  readonly from: 'now' | 'positions' | 'unknown';
}

class MergedEvents {
  readonly #deps: FleetDeps;
  readonly #terms: MergedTerms;
  readonly #stream: StreamTerms;
  readonly #queue = new PassThrough({ objectMode: true, highWaterMark: MOST_QUEUED / 2 });
  readonly #over = new AbortController();
  /** Includes those about to be read. */
  readonly #reading = new Set<string>();
  readonly #missing = new Set<string>();

  constructor(deps: FleetDeps, terms: MergedTerms, stream: StreamTerms) {
    this.#deps = deps;
    this.#terms = terms;
    this.#stream = stream;
    this.#queue.setMaxListeners(0); // each cluster may wait for `drain`
  }

  async *events(signal: AbortSignal): AsyncGenerator<ServerEvent, void, undefined> {
    const { fleet, passing } = this.#deps;
    let callOff = (): void => undefined;
    const lookAgain = (): void => {
      callOff = passing.clock.at(passing.clock.now() + LOOK_MS, () => {
        this.#look(signal, 'late');
        lookAgain();
      });
    };
    const end = (): void => {
      this.#over.abort();
      this.#queue.destroy();
    };
    if (signal.aborted) return;
    setMaxListeners(0, signal, this.#over.signal); // each cluster has its own
    signal.addEventListener('abort', end, { once: true });
    try {
      if (this.#stream.from === 'unknown') yield { event: 'reset', data: {} };
      if (this.#isAbout(fleet.clusterId)) void this.#readOwn(signal).finally(end);
      this.#look(signal, 'first');
      lookAgain();
      for await (const heard of this.#queue as AsyncIterable<Heard>) yield* this.#shown(heard);
    } catch (error) {
      if (!this.#over.signal.aborted) throw error; // else the queue was destroyed
    } finally {
      callOff();
      end();
    }
  }

  #isAbout(clusterId: string): boolean {
    return this.#stream.named === undefined || this.#stream.named === clusterId;
  }

  #look(signal: AbortSignal, when: 'first' | 'late'): void {
    const { fleet } = this.#deps;
    for (const { clusterId, status } of fleet.listOthers()) {
      if (!this.#isAbout(clusterId) || this.#reading.has(clusterId)) continue;
      if (status !== 'Connected') {
        void this.#miss(clusterId);
        continue;
      }
      this.#reading.add(clusterId);
      void this.#read(clusterId, { signal, when }).finally(() => this.#reading.delete(clusterId));
    }
  }

  /** Never rejects. */
  async #readOwn(signal: AbortSignal): Promise<void> {
    const { clusterId } = this.#deps.fleet;
    await this.#begun(clusterId, 'first');
    try {
      for await (const { event, id, data } of this.#stream.own(signal))
        await this.#put({ clusterId, what: { event, id, data } });
    } catch {
      // the whole stream ends with it, and the client reconnects
    }
  }

  /** Never rejects. */
  async #read(
    clusterId: string,
    { signal, when }: { readonly signal: AbortSignal; readonly when: 'first' | 'late' },
  ): Promise<void> {
    const over = new AbortController();
    const end = (): void => over.abort(clusterUnavailable(clusterId, 'no longer sends events'));
    signal.addEventListener('abort', end, { once: true });
    const { clock } = this.#deps.passing;
    const callOff = clock.at(clock.now() + BEGIN_MS, end);
    try {
      const answer = await this.#ask(this.#deps.fleet.wayTo(clusterId), over.signal);
      callOff();
      if (answer.statusCode !== 200) throw new Error(`it answered ${String(answer.statusCode)}`);
      await this.#begun(clusterId, when);
      for await (const what of readClusterEvents(answer)) await this.#put({ clusterId, what });
    } catch {
      // reported as missing below
    } finally {
      callOff();
      end();
      signal.removeEventListener('abort', end);
    }
    await this.#miss(clusterId);
  }

  #ask(way: WayToCluster, signal: AbortSignal) {
    const { caller, context } = this.#terms;
    return this.#deps.passing.pass({
      way,
      caller,
      request: context.req,
      requestId: context.state.requestId,
      signal,
      target: targetOf(context, { begin: 'true' }),
      after: { id: this.#stream.positions.get(way.clusterId) },
    });
  }

  /** Sends a `reset` if the position is unknown, since the cluster then starts with new events. */
  async #begun(clusterId: string, when: 'first' | 'late'): Promise<void> {
    const { positions, from } = this.#stream;
    const isKnown = positions.has(clusterId);
    if (this.#missing.delete(clusterId)) await this.#put({ clusterId, what: 'back' });
    if (!isKnown && (when === 'late' || from === 'positions'))
      await this.#put({ clusterId, what: { event: 'reset', id: undefined, data: {} } });
  }

  /** Waits while the queue is full. Never rejects. */
  async #put(heard: Heard): Promise<void> {
    const { signal } = this.#over;
    if (signal.aborted || this.#queue.write(heard)) return;
    await once(this.#queue, 'drain', { signal }).catch(() => undefined);
  }

  async #miss(clusterId: string): Promise<void> {
    if (this.#missing.has(clusterId)) return;
    this.#missing.add(clusterId);
    await this.#put({ clusterId, what: 'missing' });
  }

  *#shown({ clusterId, what }: Heard): Generator<ServerEvent, void, undefined> {
    if (what === 'missing' || what === 'back') {
      yield { event: 'cluster', data: { clusterID: clusterId, incomplete: what === 'missing' } };
      return;
    }
    const { positions } = this.#stream;
    const { event, id, data } = what;
    if (id !== undefined && isPosition(id) && id !== '') {
      positions.delete(clusterId); // moves it to the end
      positions.set(clusterId, id);
    }
    const place = { id: positionsText(positions).text };
    if (event === undefined || event === 'message')
      yield { ...place, data: { ...itemInFleet(clusterId, data), clusterID: clusterId } };
    else if (event === 'reset') yield { event, data: { clusterID: clusterId } };
    else if (event === 'begin' && this.#asksForBegin())
      yield { event, ...place, data: { clusterID: clusterId } };
  }

  #asksForBegin(): boolean {
    const { begin } = this.#terms.request.query as { readonly begin?: boolean };
    return begin === true;
  }
}

/** A longer event ends its cluster's stream. */
const MOST_EVENT_CHARACTERS = 65_536;

interface ClusterEvent {
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: object;
}

/** Throws if an event is malformed or too long. */
async function* readClusterEvents(
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
      if (error.type === 'max-buffer-size-exceeded') failure = error; // ignores unknown fields
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
