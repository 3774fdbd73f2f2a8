import type { ChannelSocket } from './channel-socket.ts';
import { PortStream, type PortStreamTerms } from './port-stream.ts';

const DATA = 0;
const FAILURE = 1;
/** Both channels begin with the port. */
const PREFIX_BYTES = 2;
const LONGEST_FAILURE = 1_024;

/** `silent` as in `PortCarrier`. */
export type PortTerms = Omit<PortStreamTerms, 'carrier' | 'channel'> &
  Pick<PortStreamTerms['carrier'], 'silent'>;

/**
 * The one connection that a link has where the API server can't tunnel SPDY; it ends with the link.
 */
export const portOverChannels = (
  socket: ChannelSocket,
  { silent, ...terms }: PortTerms,
): PortStream => {
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
