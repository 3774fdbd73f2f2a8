import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { built } from './built.ts';
import { loadConfig } from '../src/config/config.ts';

/**
 * The built daemon in a process that can tell its event loop's delay: `daemon-with-probe OPTIONS`,
 * the options as JSON, by name. Says `ready` first; then takes `reset` and `read`. Ends, in order,
 * when its parent lets go of it.
 */

export type ProbeOrder = 'reset' | 'read';
/** Milliseconds; the timer's own millisecond is part of them. */
export type ProbeAnswer =
  | 'ready'
  | 'done'
  | { readonly p50: number; readonly p99: number; readonly max: number };

const { createDaemon } =
  await built<typeof import('../src/daemon/create-daemon.ts')>('daemon/create-daemon');
const { createLog } = await built<typeof import('../src/process/log.ts')>('process/log');
const { writePidFile } =
  await built<typeof import('../src/process/pid-file.ts')>('process/pid-file');

const { config } = loadConfig({
  argvOptions: JSON.parse(process.argv[2] ?? '{}') as Record<string, string>,
  files: [resolve('config/default.yaml')],
});
mkdirSync(config.dataDir, { recursive: true });
const daemon = await createDaemon(config, {
  log: createLog('warn'),
  replica: 'local',
  stopped: new AbortController().signal,
});
const { address } = await daemon.start();
writePidFile(config.dataDir, address);

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const inMs = (nanoseconds: number): number => nanoseconds / 1e6;
const say = (answer: ProbeAnswer): void => {
  process.send?.(answer);
};

process.on('message', (order: ProbeOrder) => {
  if (order === 'reset') {
    delay.reset();
    return say('done');
  }
  say({ p50: inMs(delay.percentile(50)), p99: inMs(delay.percentile(99)), max: inMs(delay.max) });
});
process.on('disconnect', () => {
  daemon.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
say('ready');
