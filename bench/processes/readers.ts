import type { Socket } from 'node:net';
import { headOf, hearing, openConnection } from '../answer-stream.ts';
import { tenantKeyOf } from '../claimed-sandbox.ts';
import type { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { SILENT_STREAMS, silentStreams } from '../silent-streams.ts';
import { STALLED_READERS, stalledReaders } from '../stalled-readers.ts';

export const silent: Figure = {
  name: 'processes:silent',
  about: `${SILENT_STREAMS} streams that say nothing: their part of a core, and memory`,
  run: async (bench) =>
    await silentStreams(bench, {
      what: 'silent streams',
      open: (daemon, id) => opened(daemon, id, ['/bin/sleep', 'infinity']),
    }),
};

export const stalled: Figure = {
  name: 'processes:stalled',
  about: `${STALLED_READERS} readers that stall under \`yes\`: memory; others' claim p99, against without`,
  run: async (bench) =>
    await stalledReaders(bench, {
      what: 'stalled readers',
      open: readersOf,
      end: removeAll,
    }),
};

/** A process that runs, and its stream. */
const opened = async (daemon: Daemon, id: string, command: readonly string[]): Promise<Socket> => {
  const socket = await openConnection(daemon.service.port);
  socket.setTimeout(0);
  socket.write(
    headOf({
      port: daemon.service.port,
      key: tenantKeyOf(daemon),
      method: 'POST',
      path: `/sandboxes/${id}/processes`,
      headers: ['Accept: text/event-stream'],
      body: JSON.stringify({ command }),
    }),
  );
  await hearing(socket, 'event: start\n');
  return socket;
};

/** Readers of one `yes`, which take the start of it and no more. */
const readersOf = async (daemon: Daemon, id: string): Promise<readonly Socket[]> => {
  const first = await opened(daemon, id, ['/usr/bin/yes']);
  first.pause();
  const [processId = ''] = await processesOf(daemon, id);
  const others = await Promise.all(
    Array.from({ length: STALLED_READERS - 1 }, async () => {
      const socket = await openConnection(daemon.service.port);
      socket.setTimeout(0);
      socket.write(
        headOf({
          port: daemon.service.port,
          key: tenantKeyOf(daemon),
          method: 'GET',
          path: `/sandboxes/${id}/processes/${processId}/output`,
          headers: ['Accept: text/event-stream'],
        }),
      );
      await hearing(socket, 'HTTP/1.1 200 ');
      return socket.pause();
    }),
  );
  return [first, ...others];
};

const processesOf = async ({ service }: Daemon, id: string): Promise<readonly string[]> => {
  const path = `/sandboxes/${id}/processes`;
  const { items } = JSON.parse(await service.call({ method: 'GET', path }, 200)) as {
    readonly items: readonly { readonly processId: string }[];
  };
  return items.map(({ processId }) => processId);
};

const removeAll = async (daemon: Daemon, id: string): Promise<void> => {
  for (const processId of await processesOf(daemon, id)) {
    const path = `/sandboxes/${id}/processes/${processId}`;
    await daemon.service.call({ method: 'DELETE', path }, 200);
  }
};
