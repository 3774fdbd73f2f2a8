/**
 * Serves a gateway whose connections throw in a callback of their own, where nobody can catch it.
 * A process of its own: mocha would take the exception for a test's. Prints its port, then its key
 * and sandbox; ends with 3 where an exception belongs to no request.
 */
import { connect } from 'node:net';
import { endFaulty } from '../../src/lib/fault-scope.ts';
import { aGateway } from './gateway-support.ts';

process.on('uncaughtException', (error) => {
  if (!endFaulty(error)) process.exit(3);
});
process.on('disconnect', () => {
  process.exit(0);
});
process.on('message', () => {
  setTimeout(() => {
    throw new Error('of no request');
  });
});

const under = await aGateway({
  dial: async (port) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('data', (bytes: Buffer) => {
      if (bytes.includes('fault')) throw new Error('the stream has a fault');
    });
    return socket;
  },
});
await under.serve((request, response) => {
  response.end(request.url === '/bad' ? 'fault' : 'good');
});
process.send?.({ port: under.port, key: under.key, id: under.id });
