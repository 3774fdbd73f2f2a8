import { readdirSync, readlinkSync } from 'node:fs';
import { pathsOf } from './protocol.ts';
import { Spawner } from './spawner.ts';

/**
 * Run as `main DATA_DIR` through `flock`, whose lock descriptor it inherits. Writes `ready` when a
 * daemon can connect.
 */
const main = async (dataDir: string | undefined): Promise<void> => {
  if (!dataDir) throw new Error('usage: main DATA_DIR');
  if (!holdsLock(pathsOf(dataDir).lock)) throw new Error('the lock on the data folder is not held');
  process.title = 'sandpool-spawner';
  const spawner = new Spawner({
    dataDir,
    now: Date.now,
    random: Math.random,
    over: () => process.exit(0),
  });
  process.on('SIGTERM', () => spawner.stop());
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGPIPE'] as const) process.on(signal, () => {});
  await spawner.start();
  // The daemon may have stopped reading after its deadline.
  process.stdout.on('error', () => {});
  process.stdout.end('ready\n');
};

const holdsLock = (lock: string): boolean =>
  readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === lock;
    } catch {
      return false;
    }
  });

await main(process.argv[2]);
