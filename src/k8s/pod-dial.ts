import type { Duplex } from 'node:stream';
import { PortUnreachable } from '../contracts/sandbox-driver.ts';
import { ApiUnreachable } from './api-errors.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { ChannelStream } from './channel-stream.ts';
import { cleaned } from './cleaned-message.ts';
import type { PodLinks } from './pod-links.ts';
import { enterPod, NodeSilent, requireJoinable, type PodTarget } from './pod-presence.ts';

const DATA = 0;
const FAILURE = 1;
/** Both channels begin with the port. */
const PREFIX_BYTES = 2;
/** kubelet says that a port refused, never that it took: it counts as taken when kubelet, asked again, has said nothing for so long. */
const REFUSAL_WITHIN_MS = 50;
const ANSWER_WITHIN_MS = 15_000;
const LONGEST_FAILURE = 1_024;

/**
 * A connection to a port of a Pod's own loopback, through the API server and kubelet, as `SandboxDriver.dial` promises it:
 * to no other address can this lead. Half-closing isn't carried: the port sees no end of what is written before the whole
 * connection is over.
 */
export const dialInPod = async (links: PodLinks, target: PodTarget, port: number, signal: AbortSignal): Promise<Duplex> => {
  signal.throwIfAborted();
  await requireJoinable(links.api, target);
  signal.throwIfAborted();
  const opening = links.open(target, `portforward?ports=${port}`, 'v4.channel.k8s.io').catch((error: unknown) => {
    // The API server answered a moment ago, and this is its kubelet's to answer.
    throw error instanceof ApiUnreachable && error.message.includes('timed out') ? new NodeSilent({ cause: error }) : error;
  });
  const socket = await enterPod(links.api, target, opening);
  return await new Connection(socket, port).taken(signal);
};

class Connection {
  readonly #socket: ChannelSocket;
  readonly #port: number;
  readonly #stream: ChannelStream;
  readonly #taken: Promise<Duplex>;
  #resolve: (stream: Duplex) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #prefixes = { [DATA]: PREFIX_BYTES, [FAILURE]: PREFIX_BYTES };
  #failure = '';

  constructor(socket: ChannelSocket, port: number) {
    this.#socket = socket;
    this.#port = port;
    this.#stream = new ChannelStream(socket, DATA, () => { socket.close(); });
    this.#taken = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  async taken(signal: AbortSignal): Promise<Duplex> {
    const abort = (): void => { this.#refuse(signal.reason); };
    const timer = setTimeout(() => { this.#refuse(this.#unreachable('no answer')); }, ANSWER_WITHIN_MS);
    signal.addEventListener('abort', abort, { once: true });
    this.#socket.listen({
      data: (channel, bytes) => { this.#heard(channel, bytes); },
      closed: (why, clean) => { this.#closed(why, clean); },
    });
    try {
      if (signal.aborted) abort();
      return await this.#taken;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  #heard(channel: number, bytes: Buffer): void {
    if (channel !== DATA && channel !== FAILURE) return;
    const skipped = Math.min(this.#prefixes[channel], bytes.length);
    this.#prefixes[channel] -= skipped;
    const rest = bytes.subarray(skipped);
    if (skipped > 0 && this.#prefixes[DATA] + this.#prefixes[FAILURE] === 0) void this.#awaitRefusal();
    if (rest.length === 0) return;
    if (channel === DATA) {
      this.#stream.arrived(rest);
      this.#resolve(this.#stream);
    } else {
      this.#failure = (this.#failure + rest.toString('utf8')).slice(0, LONGEST_FAILURE);
      this.#refuse(this.#unreachable(this.#failure));
    }
  }

  async #awaitRefusal(): Promise<void> {
    await Promise.all([this.#socket.roundTrip(), new Promise((resolve) => { setTimeout(resolve, REFUSAL_WITHIN_MS); })]);
    if (!this.#stream.destroyed) this.#resolve(this.#stream);
  }

  #closed(why: string, clean: boolean): void {
    this.#reject(this.#unreachable(why));
    if (clean) this.#stream.push(null);
    else this.#stream.destroy(this.#unreachable(`the link was lost: ${why}`));
  }

  /** To whoever waits for it, or else to whoever has the stream. */
  #refuse(error: unknown): void {
    this.#reject(error);
    this.#stream.on('error', () => {}); // where nobody has it
    this.#stream.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  #unreachable(why: string): PortUnreachable {
    return new PortUnreachable(`port ${this.#port}: ${cleaned(why)}`);
  }
}
