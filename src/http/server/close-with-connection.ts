import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** By connection, its responses that are not closed yet. */
const open = new WeakMap<Duplex, Set<ServerResponse>>();

/**
 * Has the response close at the latest with its connection. Where a client sends requests without
 * waiting for answers, Node closes the response that is being written, and none of those that wait
 * for it: nobody would learn that their client is gone.
 */
export const closeWithConnection = (
  { socket }: IncomingMessage,
  response: ServerResponse,
): void => {
  const known = open.get(socket);
  const responses = known ?? new Set<ServerResponse>();
  responses.add(response);
  response.once('close', () => responses.delete(response));
  if (known) return;
  open.set(socket, responses);
  socket.once('close', () => {
    for (const each of [...responses]) closeWaiting(each);
  });
};

/** Does what Node does with a response that has the connection, which closes by itself. */
const closeWaiting = (response: ServerResponse): void => {
  if (response.socket !== null || response.writableFinished || response.closed) return;
  response.destroy();
  Object.assign(response, { _closed: true });
  response.emit('close');
};
