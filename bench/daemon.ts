import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readPidFile } from '../src/daemon/process/pid-file.ts';
import type { Load } from './load.ts';
import { childrenOf, commandOf, untilCalm } from './process-facts.ts';
import { Service } from './service.ts';
import { removeTemporaryFolder, temporaryFolder } from './temporary-folder.ts';

/** script/bench starts in the root folder. */
const COMMAND = resolve('dist/cli/main.js');
const READY_DEADLINE_MS = 60_000;

const BENCH_FLAGS: readonly string[] = [
  '--metrics-listen',
  '127.0.0.1:0',
  '--compatible-api-listen',
  'none',
  '--default-pool-replicas',
  '0',
  '--interpreter-pool-max-replicas',
  '0',
  '--quotas-sandboxes',
  '100000',
  '--quotas-pools',
  '1000',
  '--quotas-replicas',
  '100000',
];

export const COMPATIBLE_FLAGS: readonly string[] = ['--compatible-api-listen', '127.0.0.1:0'];

interface StartTerms {
  readonly prepare?: (dataDir: string) => Promise<void> | void;
  readonly env?: Readonly<Record<string, string>>;
}

export class Daemon {
  readonly dataDir: string;
  /** Until it was ready. */
  readonly startMs: number;
  readonly service: Service;
  readonly key: string;
  readonly #process: ChildProcess;

  private constructor(
    dataDir: string,
    child: ChildProcess,
    terms: { load: Load; startMs: number },
  ) {
    this.dataDir = dataDir;
    this.startMs = terms.startMs;
    this.#process = child;
    this.key = readFileSync(join(dataDir, 'keys', 'tenant.key'), 'utf8').trim();
    const address = readPidFile(dataDir)?.address;
    if (address === undefined) throw new Error('the daemon left no note of its address');
    this.service = new Service(Number(new URL(address).port), this.key, terms.load);
  }

  static async start(
    load: Load,
    flags: readonly string[] = [],
    { prepare, env = {} }: StartTerms = {},
  ): Promise<Daemon> {
    const dataDir = temporaryFolder();
    living.add(dataDir);
    await prepare?.(dataDir);
    const log = openSync(join(dataDir, 'log'), 'w');
    const began = performance.now();
    const child = spawn(
      process.execPath,
      [
        COMMAND,
        'serve',
        '--data-dir',
        dataDir,
        '--listen',
        '127.0.0.1:0',
        ...BENCH_FLAGS,
        ...flags,
      ],
      {
        stdio: ['ignore', 'pipe', log],
        env: { ...process.env, ...env },
        detached: true, // the bench ends it in order after an interrupt
      },
    );
    closeSync(log);
    try {
      await ready(child);
    } catch (error) {
      throw new Error(
        `the daemon did not start: ${readFileSync(join(dataDir, 'log'), 'utf8').slice(-2_000)}`,
        { cause: error },
      );
    }
    return new Daemon(dataDir, child, { load, startMs: performance.now() - began });
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error('the daemon did not start');
    return this.#process.pid;
  }

  get spawnerPid(): number {
    const found = childrenOf(this.pid).find((pid) => commandOf(pid).includes('spawner'));
    if (found === undefined) throw new Error('there is no spawner');
    return found;
  }

  get compatibleUrl(): URL {
    const address = readPidFile(this.dataDir)?.compatibleAddress;
    if (address === undefined) throw new Error("the daemon does not serve the API of E2B's SDKs");
    return new URL(address);
  }

  async keyOfTeam(team: string): Promise<string> {
    const key = readFileSync(join(this.dataDir, 'keys', 'admin.key'), 'utf8').trim();
    const body = JSON.stringify({ team, user: team });
    const ask = { method: 'POST', path: '/admin/api-keys', key, body };
    return (JSON.parse(await this.service.call(ask, 201)) as { readonly apiKey: string }).apiKey;
  }

  async calm(): Promise<void> {
    await untilCalm([this.pid, this.spawnerPid]);
  }

  /** Also ends its sandboxes, and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.close();
    await endAll(this.dataDir);
  }
}

const endAll = async (dataDir: string): Promise<void> => {
  const ending = endings.get(dataDir) ?? stopAll(dataDir);
  endings.set(dataDir, ending);
  await ending;
  living.delete(dataDir);
};

/** After an interrupt. */
export const endLiving = async (): Promise<void> => {
  for (const dataDir of [...living]) await endAll(dataDir);
};

const stopAll = async (dataDir: string): Promise<void> => {
  const child = spawn(process.execPath, [COMMAND, 'stop', '--all', '--data-dir', dataDir], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + String(chunk)).slice(-1_000);
  });
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0)
    throw new Error(
      `sandpool stop --all ended with ${String(code)}; its folder is ${dataDir}: ${complaint}`,
    );
  removeTemporaryFolder(dataDir);
};

const living = new Set<string>();
const endings = new Map<string, Promise<void>>();

const ready = async (child: ChildProcess): Promise<void> => {
  const signal = AbortSignal.timeout(READY_DEADLINE_MS);
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error('it ended');
  });
  ended.catch(() => undefined);
  let said = '';
  while (!said.includes('Sandpool is ready')) {
    if (!child.stdout) throw new Error('it has no output');
    const [chunk]: unknown[] = await Promise.race([once(child.stdout, 'data', { signal }), ended]);
    said += String(chunk);
  }
  child.stdout?.resume();
};
