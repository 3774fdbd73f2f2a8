import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Speaks like `launcher forward`, for this machine's ports. */
export const aForwarder = async (): Promise<{
  readonly socket: string;
  readonly stop: () => Promise<void>;
}> => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-forwarder-'));
  const socket = join(folder, 'socket');
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (outside) => {
    open.add(outside);
    outside
      .on('error', () => {})
      .once('data', (first: Buffer) => {
        const inside = connect({
          port: first.readUInt16BE(0),
          host: '127.0.0.1',
          allowHalfOpen: true,
        });
        outside.pause().unshift(first.subarray(2));
        inside.once('connect', () => {
          outside.write(Buffer.from([0]));
          outside.pipe(inside).pipe(outside);
        });
        inside.on('error', (error: NodeJS.ErrnoException) => {
          if (inside.remoteAddress === undefined)
            outside.end(Buffer.from([Math.abs(error.errno ?? 5)]));
          else outside.destroy();
        });
        outside.once('close', () => inside.destroy());
      });
  }).listen(socket);
  await once(server, 'listening');
  return {
    socket,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const outside of open) outside.destroy();
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
