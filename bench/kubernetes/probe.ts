import { subscribe } from 'node:diagnostics_channel';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Loaded into a replica by NODE_OPTIONS: answers on the Unix socket that BENCH_PROBE names.
 * `/report`: heap after a collection, and the longest time that the event loop was held since the
 * last report. `/profile?FILE`: begins a CPU profile, or ends it and writes it.
 */

export interface ProbeReport {
  /** Bytes. */
  readonly heap: number;
  readonly rss: number;
  /** Milliseconds, and when, since the process began; the longest ten of more than 5 ms. */
  readonly stalls: readonly { readonly at: number; readonly ms: number }[];
}

const TICK_MS = 1;
const LEAST_STALL_MS = 5;
const MOST_STALLS = 10;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
let stalls: { at: number; ms: number }[] = [];
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  const ms = now - last - TICK_MS;
  last = now;
  if (ms < LEAST_STALL_MS) return;
  stalls.push({ at: now, ms });
  stalls.sort((a, b) => b.ms - a.ms).splice(MOST_STALLS);
}, TICK_MS).unref();

// Until it first connects to anything it loads its modules.
let connected = false;
subscribe('net.client.socket', () => {
  if (!connected) stalls = [];
  connected = true;
});

const report = (): ProbeReport => {
  const found = stalls;
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  stalls = [];
  last = performance.now();
  return { heap: heapUsed + external, rss, stalls: found };
};

let session: Session | undefined;

const profile = async (file: string): Promise<string> => {
  if (!session) {
    session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    return 'begun';
  }
  const { profile: found } = await session.post('Profiler.stop');
  session.disconnect();
  session = undefined;
  writeFileSync(file, JSON.stringify(found));
  return 'written';
};

const socket = process.env['BENCH_PROBE'];
if (socket !== undefined) {
  rmSync(socket, { force: true }); // of the process before this one
  createServer((request, response) => {
    const [path, file = ''] = (request.url ?? '').split('?');
    (path === '/report'
      ? Promise.resolve(JSON.stringify(report()))
      : profile(decodeURIComponent(file))
    ).then(
      (text) => response.end(text),
      (error: unknown) => {
        response.statusCode = 500;
        response.end(String(error));
      },
    );
  })
    .listen(socket)
    .unref();
}
