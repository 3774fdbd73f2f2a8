/**
 * A manager, `hub`, and joined workers of the built daemon (`script/server --fleet N`). All ends
 * with this process, and nothing is kept.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../local-cluster/eventually.ts';
import { readPidFile } from '../src/daemon/process/pid-file.ts';

const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const USUAL_PORT = 8080;
const MOST_WORKERS = 8;
const run = promisify(execFile);

interface Started {
  readonly dataDir: string;
  readonly process: ChildProcess;
}

/** Also what did not come up. */
const started: Started[] = [];

/** Resolves with its address. */
const start = async (dataDir: string, flags: readonly string[]): Promise<string> => {
  const child = spawn(
    process.execPath,
    [COMMAND, 'serve', '--data-dir', dataDir, '--metrics-listen', 'none', ...flags],
    // this process stops them in order after a signal of the terminal
    { stdio: ['ignore', 'ignore', 'inherit'], detached: true },
  );
  started.push({ dataDir, process: child });
  const address = (): string | undefined => readPidFile(dataDir)?.address;
  await eventually(() => address() !== undefined || hasEnded(child), `${dataDir} is served`);
  const at = address();
  if (at === undefined) throw new Error('a daemon did not start; see above');
  return at;
};

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

const stop = async ({ dataDir, process: child }: Started): Promise<void> => {
  if (!hasEnded(child)) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await run(process.execPath, [COMMAND, 'stop', '--all', '--data-dir', dataDir]);
};

interface Manager {
  readonly dataDir: string;
  readonly address: string;
}

const joined = async (folder: string, clusterId: string, hub: Manager): Promise<void> => {
  const file = join(folder, `${clusterId}.token`);
  const { stdout } = await run(process.execPath, [
    ...[COMMAND, 'clusters', 'join-token', clusterId, '--data-dir', hub.dataDir],
  ]);
  writeFileSync(file, stdout, { mode: 0o600 });
  await start(join(folder, clusterId), [
    ...['--cluster-id', clusterId, '--listen', '127.0.0.1:0', '--compatible-api-listen', 'none'],
    ...['--fleet-managers', hub.address.replace('http', 'ws')],
    ...['--fleet-join-token-file', file],
  ]);
};

const isWhole = async ({ dataDir, address }: Manager): Promise<boolean> => {
  const key = readFileSync(join(dataDir, 'keys', 'tenant.key'), 'utf8').trim();
  const answer = await fetch(`${address}/clusters`, { headers: { 'SERVICE-API-KEY': key } });
  const { items } = (await answer.json()) as { readonly items: readonly { status: string }[] };
  return items.every(({ status }) => status === 'Connected');
};

const serve = async (count: number, port: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-fleet-'));
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        resolve();
      });
  });
  try {
    const dataDir = join(folder, 'hub');
    const address = await start(dataDir, [
      ...['--role', 'manager', '--cluster-id', 'hub', '--listen', `127.0.0.1:${port}`],
      ...(port === USUAL_PORT ? [] : ['--compatible-api-listen', '127.0.0.1:0']),
    ]);
    const hub = { dataDir, address };
    const clusterIds = Array.from({ length: count }, (_, n) => `w${n + 1}`);
    await Promise.all(clusterIds.map((clusterId) => joined(folder, clusterId, hub)));
    await eventually(() => isWhole(hub), 'all workers are connected');
    process.stdout.write(`
Sandpool is ready: a manager at ${address} and ${count} workers. Nothing of it is kept.
In another terminal, in this folder:

  export SANDPOOL_DATA_DIR=${dataDir}
  bin/sandpool clusters
  bin/sandpool run --pool ${clusterIds[0] ?? 'hub'}::default -- uname

Ctrl-C stops it.
`);
    await asked;
  } finally {
    const [manager, ...workers] = started;
    for (const each of [workers, manager ? [manager] : []])
      await Promise.all(
        each.map((one) =>
          stop(one).catch((error: unknown) => {
            process.stderr.write(`${String(error)}\n`);
          }),
        ),
      );
    rmSync(folder, { recursive: true, force: true });
  }
};

const [count = '2', port = String(USUAL_PORT)] = process.argv.slice(2);
if (!/^\d{1,2}$/.test(count) || Number(count) > MOST_WORKERS || !/^\d{1,5}$/.test(port)) {
  process.stderr.write(`script/server --fleet takes 0 to ${MOST_WORKERS} workers and a port.\n`);
  process.exitCode = 2;
} else await serve(Number(count), Number(port));
