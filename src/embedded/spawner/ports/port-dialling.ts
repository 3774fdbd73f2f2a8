import { portSocket, type Failure, type PortSocket } from './port-socket.ts';

/**
 * Resolves with undefined if no forwarder listens. Rejects with the reason of a failure, or the
 * signal's reason.
 */
export const dialPort = async (
  path: string,
  port: number,
  signal: AbortSignal,
): Promise<PortSocket | undefined> => {
  const socket = await openWay(path, signal, (why) => new Error(why));
  if (!socket) return undefined;
  socket.choose(port, signal);
  await socket.taken;
  return socket;
};

/** Connects before a port is chosen. Resolves with undefined if no forwarder listens. */
export const openWay = (
  path: string,
  signal: AbortSignal,
  failure: Failure,
): Promise<PortSocket | undefined> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = portSocket(path, failure);
    const settle = (act: () => void): void => {
      signal.removeEventListener('abort', abort);
      socket.off('connect', connected).off('error', failed);
      act();
    };
    const abort = (): void =>
      settle(() => {
        socket.destroy();
        reject(signal.reason);
      });
    const connected = (): void => settle(() => resolve(socket));
    const failed = (error: NodeJS.ErrnoException): void =>
      settle(() => {
        if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
        else reject(failure(`its port forwarder: ${error.message}`));
      });
    signal.addEventListener('abort', abort, { once: true });
    socket.on('connect', connected).on('error', failed);
  });
