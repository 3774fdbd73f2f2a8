import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 } from 'uuid';
import type { GlobalTemplateCopies } from '../../src/contracts/fleet/global-templates.ts';
import type { PromotedKeyCopies } from '../../src/contracts/fleet/promoted-keys.ts';
import { silentLog } from '../../src/contracts/log.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { WorkerCredentials } from '../../src/fleet/worker-credentials.ts';
import { WorkerLinks } from '../../src/fleet/worker-links.ts';
import type { WorkersAnswer, WorkersOrder } from './worker-protocol.ts';

/**
 * Worker clusters by their own end of a link, without a daemon behind it: each lists so many
 * sandboxes, and has as many more as are claimed. Identities are not looked at: that is a worker's
 * work, not a manager's.
 */

/** Takes nothing of what a manager tells. */
const noCopies: PromotedKeyCopies & GlobalTemplateCopies = {
  leadsTo: () => undefined,
  begin: () => ({
    take: async () => undefined,
    caughtUp: async () => undefined,
    left: async () => undefined,
    end: () => undefined,
  }),
  report: async () => ({ state: 'Absent', pools: [] }),
};
const links: WorkerLinks[] = [];
const folders: string[] = [];
const clock = systemClock();
const STARTED = Date.now();

const sandboxOf = (age: number) => ({
  sandboxId: v7(),
  namespace: 'default',
  poolName: 'bench',
  podName: 'sb-0190d4a57b1e7c3a9f00',
  status: 'Running',
  claimedAt: new Date(STARTED - age * 1_000).toISOString(),
  startedAt: new Date(STARTED - age * 1_000).toISOString(),
  durationSeconds: age,
  cpu: '1',
  memory: '256Mi',
  team: 'default',
  user: 'default',
  containerImages: { main: 'host' },
});

const serverOf = (sandboxes: number): Server => {
  const all = Array.from({ length: sandboxes }, (_, age) => sandboxOf(age));
  const claimed = JSON.stringify({ sandbox: { ...sandboxOf(0), endpoints: {} } });
  return createServer((request, response) => {
    request.resume();
    const url = new URL(request.url ?? '/', 'http://worker');
    const limit = Number(url.searchParams.get('limit') ?? 20);
    const offset = Number(url.searchParams.get('offset') ?? 0);
    const isClaim = request.method === 'POST';
    const text = isClaim
      ? claimed
      : JSON.stringify({
          items: all.slice(offset, offset + limit),
          total: sandboxes,
          limit,
          offset,
        });
    response.writeHead(isClaim ? 201 : 200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(text),
    });
    response.end(text);
  });
};

const join1 = (
  { clusterId, token }: { readonly clusterId: string; readonly token: string },
  { manager, server }: { readonly manager: string; readonly server: Server },
): Promise<void> =>
  new Promise((resolve) => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-bench-worker-'));
    folders.push(folder);
    const joinTokenFile = join(folder, 'join.token');
    writeFileSync(joinTokenFile, token, { mode: 0o600 });
    const link = new WorkerLinks({
      clusterId,
      managers: [manager],
      credentials: new WorkerCredentials({ dataDir: folder, joinTokenFile }),
      clock,
      keys: noCopies,
      templates: noCopies,
      replica: clusterId,
      log: { ...silentLog, info: () => resolve() }, // linked to a manager
      serve: (connection) => {
        connection.on('error', () => undefined);
        server.emit('connection', connection);
      },
    });
    links.push(link);
    link.start();
  });

const leave = (): void => {
  for (const link of links.splice(0)) link.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
};

/** As many at a time as a manager takes in before they have proved who they are. */
const AT_ONCE = 16;

const carryOut = async (order: WorkersOrder): Promise<WorkersAnswer> => {
  if (order.kind === 'leave') {
    leave();
    return 'done';
  }
  const server = serverOf(order.sandboxes);
  for (let at = 0; at < order.workers.length; at += AT_ONCE)
    await Promise.all(
      order.workers
        .slice(at, at + AT_ONCE)
        .map((worker) => join1(worker, { manager: order.manager, server })),
    );
  return 'done';
};

process.on('message', (order: WorkersOrder) => {
  void carryOut(order).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => {
  leave();
  process.exit(0);
});
