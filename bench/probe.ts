import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded into a daemon by NODE_OPTIONS: answers on the Unix socket BENCH_PROBE with the bytes of
 * its heap and beside it, after a collection.
 */
const socket = process.env['BENCH_PROBE'];

// The daemon's own processes and threads inherit NODE_OPTIONS.
if (socket !== undefined && isMainThread && process.argv.includes('serve')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  rmSync(socket, { force: true }); // from an earlier process
  createServer((_, response) => {
    collect();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    response.end(String(heapUsed + external));
  })
    .listen(socket)
    .unref();
}
