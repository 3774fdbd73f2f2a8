import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { PortConnection } from '../../../src/contracts/sandbox-driver.ts';
import { PortUnreachable } from '../../../src/contracts/sandbox-driver.ts';
import { ChannelStream, type Channels } from '../../../src/k8s/streams/channel-stream.ts';

export const dialHere = async (port: number, signal: AbortSignal): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect', { signal }).catch((error: unknown) => {
    throw new PortUnreachable(String(error));
  });
  return socket;
};

/** Dials like a Pod's port: the connection is a channel, and only its carrier is a socket. */
export const dialThroughChannel = async (
  port: number,
  signal: AbortSignal,
): Promise<PortConnection> => {
  const socket = await dialHere(port, signal);
  const stream = new ChannelStream(channelsOver(socket), 0, () => {
    socket.destroySoon();
  });
  socket.on('data', (bytes) => {
    stream.arrived(bytes);
  });
  socket.on('end', () => {
    stream.push(null);
  });
  socket.on('error', (error) => {
    stream.destroy(error);
  });
  return stream;
};

const channelsOver = (socket: Socket): Channels => ({
  send: (_channel, bytes, sent) => {
    socket.write(bytes, () => {
      sent?.();
    });
  },
  pause: () => {
    socket.pause();
  },
  resume: () => {
    socket.resume();
  },
});
