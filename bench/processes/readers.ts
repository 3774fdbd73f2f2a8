import type { Socket } from 'node:net';
import { headOf, hearing, openConnection } from '../answer-stream.ts';
import { tenantKeyOf } from '../claimed-sandbox.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { pause } from '../process-facts.ts';
import { memoryOf, SILENT_STREAMS, silentStreams } from '../silent-streams.ts';
import { quantile } from '../statistics.ts';

const STALLED = 64;
const CLAIMS = 150;
const PER_SECOND = 50;
const ONSET_MS = 1_000;

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
  about: `${STALLED} readers that stall under \`yes\`: memory; others' claim p99, against without`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool('bench', CLAIMS);
      await service.createFullPool('printing', 1);
      const id = await service.claim('printing');
      const claims = async (): Promise<number> => {
        const result = await bench.load.open(
          service.port,
          service.claims('bench', CLAIMS),
          PER_SECOND,
        );
        expectAll(result, 201);
        const p99 = quantile(result.latencies, 0.99);
        await service.giveBack(result);
        await service.untilIdle('bench', CLAIMS);
        return p99;
      };
      const memory: number[] = [];
      const beside = async (): Promise<number> => {
        const before = memoryOf(daemon);
        const sockets = await stalledReaders(daemon, id);
        try {
          await pause(ONSET_MS);
          const p99 = await claims();
          memory.push(memoryOf(daemon) - before);
          return p99;
        } finally {
          for (const socket of sockets) socket.destroy();
          await removeAll(daemon, id);
          await daemon.calm();
        }
      };
      await claims();
      await beside();
      memory.length = 0;
      const found = await inPairs(bench, { ours: beside, theirs: claims });
      return [
        {
          name: `${STALLED} stalled readers under yes: memory of daemon and spawner`,
          unit: 'MiB',
          better: 'less',
          reach: 64,
          beyond: 16,
          ours: memory,
        },
        {
          name: "others' claim p99 beside them / without",
          unit: 'ms',
          better: 'less',
          reach: 2,
          beyond: 1.2,
          ...found,
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
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
const stalledReaders = async (daemon: Daemon, id: string): Promise<readonly Socket[]> => {
  const first = await opened(daemon, id, ['/usr/bin/yes']);
  first.pause();
  const [processId = ''] = await processesOf(daemon, id);
  const others = await Promise.all(
    Array.from({ length: STALLED - 1 }, async () => {
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
