import { Agent, type RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as secure } from 'node:tls';
import type { OpenEndpoint } from '../../actors/sandbox/commands/sandbox-operations.ts';

/** Less than servers keep idle connections. */
const KEPT_MS = 4_000;
const DIAL_MS = 5_000;
const MOST_KEPT = 16;

export interface EndpointOptions extends RequestOptions {
  readonly endpoint: OpenEndpoint;
}

/** Each connection serves only its own instance and port. */
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

/** Does not verify an https endpoint's certificate: the dialed instance is known. */
export const connectEndpoint = (
  { endpoint }: EndpointOptions,
  give: (error: Error | null, stream: Duplex) => void,
): void => {
  const failed = (error: unknown): void => {
    // Node's type requires a stream, but Node ignores it.
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
