import type { Socket } from 'node:net';
import { headOf, hearing, openConnection } from '../answer-stream.ts';
import { tenantKeyOf } from '../claimed-sandbox.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { cpuMsOf, pause, residentMbOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

const [SANDBOXES, EACH] = [10, 50];
const SILENT_MS = 15_000;
const STALLED = 64;
const CLAIMS = 150;
const PER_SECOND = 50;
const ONSET_MS = 1_000;

export const silent: Figure = {
  name: 'processes:silent',
  about: `${SANDBOXES * EACH} streams that say nothing: their part of a core, and memory`,
  run: async (bench) => {
    const [cores, memory]: [number[], number[]] = [[], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      const daemon = await Daemon.start(bench.load);
      const sockets: Socket[] = [];
      try {
        await daemon.service.createFullPool('bench', SANDBOXES);
        const ids: string[] = [];
        for (let at = 0; at < SANDBOXES; at += 1) ids.push(await daemon.service.claim('bench'));
        // Until the code is compiled.
        for (const id of ids) (await opened(daemon, id, ['/bin/sleep', '0'])).destroy();
        await daemon.calm();
        const before = memoryOf(daemon);
        for (let at = 0; at < EACH; at += 1)
          sockets.push(
            ...(await Promise.all(ids.map((id) => opened(daemon, id, ['/bin/sleep', 'infinity'])))),
          );
        await daemon.calm();
        memory.push(((memoryOf(daemon) - before) * 1_024) / sockets.length);
        const used = cpuMsOf(daemon.pid) + cpuMsOf(daemon.spawnerPid);
        await pause(SILENT_MS);
        const now = cpuMsOf(daemon.pid) + cpuMsOf(daemon.spawnerPid);
        cores.push(((now - used) / SILENT_MS) * 100);
      } finally {
        for (const socket of sockets) socket.destroy();
        await daemon.dispose();
      }
    }
    const of = `${SANDBOXES * EACH} silent streams`;
    return [
      {
        name: `${of}: part of a core`,
        unit: '%',
        better: 'less',
        reach: 3,
        beyond: 1,
        ours: cores,
      },
      {
        name: `${of}: memory of daemon and spawner, each`,
        unit: 'KiB',
        better: 'less',
        reach: 64,
        beyond: 32,
        ours: memory,
      },
    ];
  },
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

const memoryOf = (daemon: Daemon): number =>
  residentMbOf(daemon.pid) + residentMbOf(daemon.spawnerPid);

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
