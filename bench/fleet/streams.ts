import { once } from 'node:events';
import type { Socket } from 'node:net';
import { openTerminal } from '../../src/client/open-terminal.ts';
import type { TerminalConnection } from '../../src/client/terminal-connection.ts';
import { readWhole, type StreamAsk } from '../answer-stream.ts';
import { roomyTemplates, tenantKeyOf } from '../claimed-sandbox.ts';
import type { Daemon } from '../daemon.ts';
import { prepare, roundTrip } from '../figures/echo.ts';
import { inPairs, type Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { withFleet } from './a-fleet.ts';

const ECHOES = 300;
const MIB = 64;
const BYTES = MIB << 20;
const PIECE = Buffer.alloc(64 << 10, 'a line of text that is of no use to anybody else here\n');

export const terminal: Figure = {
  name: 'fleet:terminal',
  about: 'a terminal’s echo through a manager, against the worker directly',
  run: async (bench) =>
    await withFleet(bench, async ({ manager, worker }) => {
      await worker.service.createFullPool('bench', 1);
      const id = await worker.service.claim('bench');
      const routed = await terminalOf(manager, `west.${id}`);
      const direct = await terminalOf(worker, id);
      const side = (of: TerminalConnection) => async (): Promise<number> => {
        const times: number[] = [];
        for (let at = 0; at < ECHOES; at += 1) times.push(await roundTrip(of, `line ${at}`));
        return quantile(times, 0.5);
      };
      for (const each of [routed, direct, routed, direct]) await side(each)();
      const found = await inPairs(bench, { ours: side(routed), theirs: side(direct) });
      routed.close();
      direct.close();
      return [
        {
          name: 'terminal echo through a manager / direct, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.5,
          beyond: 1.2,
          ...found,
        },
      ];
    }),
};

const terminalOf = async ({ service }: Daemon, sandboxId: string): Promise<TerminalConnection> => {
  const path = `/sandboxes/${sandboxId}/exec-token`;
  const answer = await service.call({ method: 'POST', path, body: '{}' }, 200);
  const connection = await openTerminal({
    server: new URL(`http://127.0.0.1:${service.port}`),
    clusterId: 'west',
    sandboxId,
    token: (JSON.parse(answer) as { readonly token: string }).token,
    cols: 80,
    rows: 24,
    deadlineMs: 5_000,
  });
  await prepare(connection);
  return connection;
};

export const file: Figure = {
  name: 'fleet:file',
  about: `a file of ${MIB} MiB up and down through a manager, against the worker directly`,
  run: async (bench) =>
    await withFleet(
      bench,
      async ({ manager, worker }) => {
        await worker.service.createFullPool('bench', 1);
        const id = await worker.service.claim('bench');
        const asks = (daemon: Daemon, name: string) => (ask: Partial<StreamAsk>) => ({
          method: 'GET',
          port: daemon.service.port,
          key: tenantKeyOf(daemon),
          ...ask,
          path: `/sandboxes/${name}/files?path=/tmp/content`,
        });
        const [routed, direct] = [asks(manager, `west.${id}`), asks(worker, id)];
        const up = (ask: typeof routed) => async (): Promise<number> =>
          rate((await readWhole(ask(UPLOAD), send)).tookMs);
        const down = (ask: typeof routed) => async (): Promise<number> => {
          const { bytes, tookMs } = await readWhole(ask({}));
          if (bytes < BYTES) throw new Error(`only ${bytes} bytes came`);
          return rate(tookMs);
        };
        const row = async (name: string, one: typeof up) => {
          for (const ask of [routed, direct, routed, direct]) await one(ask)();
          return {
            name: `${name} of ${MIB} MiB through a manager / direct`,
            unit: 'MB/s',
            better: 'more' as const,
            reach: 0.6,
            beyond: 0.8,
            ...(await inPairs(bench, { ours: one(routed), theirs: one(direct) })),
          };
        };
        return [await row('upload', up), await row('download', down)];
      },
      ['--templates-dir', roomyTemplates(bench)],
    ),
};

const UPLOAD = {
  method: 'PUT',
  headers: ['Content-Type: application/octet-stream', `Content-Length: ${BYTES}`],
};

const rate = (tookMs: number): number => MIB / (tookMs / 1_000);

const send = async (socket: Socket): Promise<void> => {
  for (let left = BYTES; left > 0; left -= PIECE.length)
    if (!socket.write(PIECE)) await once(socket, 'drain');
};
