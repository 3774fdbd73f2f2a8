import type { PortConnection } from '../../contracts/sandbox-driver.ts';
import { enterWhileLooking, type PodTarget } from '../sandboxes/pods/pod-presence.ts';
import type { ChannelSocket } from './channel-socket.ts';
import type { PodLinks } from './pod-links.ts';
import { PortStream, type PortStreamTerms } from './port-stream.ts';

const DATA = 0;
const FAILURE = 1;
/** Both channels begin with the port. */
const PREFIX_BYTES = 2;
const LONGEST_FAILURE = 1_024;

/** `silent` as in `PortCarrier`. */
type PortTerms = Omit<PortStreamTerms, 'carrier' | 'channel'> &
  Pick<PortStreamTerms['carrier'], 'silent'>;

/**
 * Connects to a port of a Pod's own loopback, through the API server and kubelet: to no other
 * address can this lead. The connection has a link of its own, which stays in the Pod that it was
 * opened into: no later Pod of that name, or with that address, is reached by it. Rejects, and
 * fails, as `SandboxDriver.dial`.
 */
export const dialPort = async (
  links: PodLinks,
  target: PodTarget,
  { port, signal }: { readonly port: number; readonly signal: AbortSignal },
): Promise<PortConnection> => {
  signal.throwIfAborted();
  const opening = links.open(target, {
    what: `portforward?ports=${port}`,
    subprotocol: 'v4.channel.k8s.io',
  });
  const socket = await enterWhileLooking(links, target, opening);
  if (signal.aborted) socket.close();
  signal.throwIfAborted();
  const silent = (): void => links.silent(target);
  return portOver(socket, { port, signal, silent, answerWithinMs: links.answerWithinMs });
};

const portOver = (socket: ChannelSocket, { silent, ...terms }: PortTerms): PortStream => {
  const carrier = {
    send: socket.send.bind(socket),
    pause: () => {
      socket.pause();
    },
    resume: () => {
      socket.resume();
    },
    roundTrip: () => socket.roundTrip(),
    left: () => {
      socket.close();
    },
    silent,
  };
  const stream = new PortStream({ carrier, channel: DATA, ...terms });
  const prefixes = { [DATA]: PREFIX_BYTES, [FAILURE]: PREFIX_BYTES };
  const heard = (channel: number, bytes: Buffer): void => {
    if (channel !== DATA && channel !== FAILURE) return;
    const skipped = Math.min(prefixes[channel], bytes.length);
    prefixes[channel] -= skipped;
    if (skipped > 0 && prefixes[DATA] + prefixes[FAILURE] === 0) stream.begun();
    const rest = bytes.subarray(skipped);
    if (rest.length === 0) return;
    if (channel === DATA) stream.arrived(rest);
    else stream.refuse(rest.toString('utf8', 0, LONGEST_FAILURE));
  };
  const closed = (why: string, clean: boolean): void => {
    if (clean && prefixes[DATA] + prefixes[FAILURE] === 0) stream.push(null);
    else stream.refuse(clean ? why : `the link was lost: ${why}`);
  };
  socket.listen({ data: heard, closed });
  return stream;
};
