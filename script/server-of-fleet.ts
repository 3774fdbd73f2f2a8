/**
 * Starts what `script/server --fleet N` runs: a manager, `hub`, and N workers of the built daemon on
 * this machine, joined to it. All of it ends with this process, and nothing is kept.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../local-cluster/eventually.ts';
import { readPidFile } from '../src/process/pid-file.ts';

const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const START_MS = 60_000;
const MOST_WORKERS = 8;
const run = promisify(execFile);

interface Started {
  readonly dataDir: string;
  readonly address: string;
  readonly process: ChildProcess;
}

const start = async (dataDir: string, flags: readonly string[]): Promise<Started> => {
  const process_ = spawn(
    process.execPath,
    [COMMAND, 'serve', '--data-dir', dataDir, '--metrics-listen', 'none', ...flags],
    // a signal of the terminal is for this process, which stops them in order
    { stdio: ['ignore', 'ignore', 'inherit'], detached: true },
  );
  const address = (): string | undefined => readPidFile(dataDir)?.address;
  await eventually(
    () => address() !== undefined || process_.exitCode !== null,
    `${dataDir} is served`,
    START_MS,
  );
  const at = address();
  if (at === undefined) throw new Error('a daemon did not start; see above');
  return { dataDir, address: at, process: process_ };
};

const stop = async ({ dataDir, process: child }: Started): Promise<void> => {
  if (child.exitCode === null) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await run(process.execPath, [COMMAND, 'stop', '--all', '--data-dir', dataDir]);
};

const serve = async (count: number, port: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-fleet-'));
  const started: Started[] = [];
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        resolve();
      });
  });
  try {
    const hub = await start(join(folder, 'hub'), [
      ...['--role', 'manager', '--cluster-id', 'hub', '--listen', `127.0.0.1:${port}`],
    ]);
    started.push(hub);
    for (let n = 1; n <= count; n += 1) {
      const clusterId = `w${n}`;
      const file = join(folder, `${clusterId}.token`);
      const { stdout } = await run(process.execPath, [
        ...[COMMAND, 'clusters', 'join-token', clusterId, '--data-dir', hub.dataDir],
      ]);
      writeFileSync(file, stdout, { mode: 0o600 });
      const manager = hub.address.replace('http', 'ws');
      started.push(
        await start(join(folder, clusterId), [
          ...['--cluster-id', clusterId, '--listen', '127.0.0.1:0'],
          ...['--compatible-api-listen', 'none'],
          ...['--fleet-managers', manager, '--fleet-join-token-file', file],
        ]),
      );
    }
    process.stdout.write(`
Sandpool is ready: a manager and ${count} workers. Nothing of it is kept.

  export SANDPOOL_DATA_DIR=${hub.dataDir}
  bin/sandpool clusters
  bin/sandpool run --pool w1::default uname

Ctrl-C stops it.
`);
    await asked;
  } finally {
    for (const each of started.toReversed())
      await stop(each).catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
      });
    rmSync(folder, { recursive: true, force: true });
  }
};

const [count = '2', port = '8080'] = process.argv.slice(2);
if (!/^\d{1,2}$/.test(count) || Number(count) > MOST_WORKERS || !/^\d{1,5}$/.test(port)) {
  process.stderr.write(`script/server --fleet takes 0 to ${MOST_WORKERS} workers and a port.\n`);
  process.exitCode = 2;
} else await serve(Number(count), Number(port));
