import { Agent, type RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as secure } from 'node:tls';
import type { OpenEndpoint } from '../../actors/sandbox/commands/sandbox-operations.ts';

/** A connection that nobody uses is kept for so long: shorter than servers keep theirs. */
const KEPT_MS = 4_000;
/** For a connection to be taken. */
const DIAL_MS = 5_000;
/** Kept for each endpoint. */
const MOST_KEPT = 16;

export interface EndpointOptions extends RequestOptions {
  readonly endpoint: OpenEndpoint;
}

/** Keeps connections to endpoints; each serves its own instance and port alone. */
export class GatewayAgent extends Agent {
  constructor() {
    super({ keepAlive: true, maxFreeSockets: MOST_KEPT, timeout: KEPT_MS });
  }

  override getName(options?: EndpointOptions): string {
    if (!options) throw new Error('a connection is for an endpoint');
    const { sandboxId, port, scheme } = options.endpoint;
    return `${sandboxId}:${port}:${scheme}`;
  }

  override createConnection(
    options: EndpointOptions,
    callback: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    connectEndpoint(options, callback);
  }
}

/**
 * For the agent, or a request of its own. An endpoint of https is spoken to without looking at its
 * certificate: who it is, is known.
 */
export const connectEndpoint = (
  { endpoint }: EndpointOptions,
  give: (error: Error | null, stream: Duplex) => void,
): void => {
  const failed = (error: unknown): void => {
    // Node's callback type has a stream at all times; beside an error it is not looked at.
    give(error instanceof Error ? error : new Error(String(error)), undefined as unknown as Duplex);
  };
  connection(endpoint).then((stream) => give(null, stream), failed);
};

const connection = async (endpoint: OpenEndpoint): Promise<Duplex> => {
  const stream = await endpoint.dial(AbortSignal.timeout(DIAL_MS));
  if (endpoint.scheme === 'http') return stream;
  await stream.taken;
  return secure({ socket: stream, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
};
