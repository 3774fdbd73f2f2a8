import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readPidFile } from '../src/process/pid-file.ts';
import type { Load } from './load.ts';
import { childrenOf, commandOf, untilCalm } from './process-facts.ts';
import { Service } from './service.ts';
import { removeTemporaryFolder, temporaryFolder } from './temporary-folder.ts';

/** The built daemon's command line; script/bench starts in the root folder. */
const COMMAND = resolve('dist/cli/main.js');
const READY_DEADLINE_MS = 20_000;

/** So that limits meant for tenants don't stop a measurement. */
export const BENCH_FLAGS: readonly string[] = [
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

/** Has a daemon serve the API of E2B's SDKs too. */
export const COMPATIBLE_FLAGS: readonly string[] = ['--compatible-api-listen', '127.0.0.1:0'];

interface StartTerms {
  readonly prepare?: (dataDir: string) => Promise<void>;
  readonly command?: string;
  readonly benchFlags?: readonly string[];
}

/** The product as it is built, on a folder that goes with it. */
export class Daemon {
  readonly dataDir: string;
  readonly service: Service;
  readonly #process: ChildProcess;

  private constructor(dataDir: string, child: ChildProcess, service: Service) {
    this.dataDir = dataDir;
    this.#process = child;
    this.service = service;
  }

  /**
   * On a new folder; `prepare` may put something in it first. `command` is another build's main
   * file, `benchFlags` those of BENCH_FLAGS that it knows.
   */
  static async start(
    load: Load,
    flags: readonly string[] = [],
    { prepare, command = COMMAND, benchFlags = BENCH_FLAGS }: StartTerms = {},
  ): Promise<Daemon> {
    const dataDir = newDataDir();
    await prepare?.(dataDir);
    const log = openSync(join(dataDir, 'log'), 'w');
    const child = spawn(
      process.execPath,
      [command, 'serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0', ...benchFlags, ...flags],
      {
        stdio: ['ignore', 'pipe', log],
        detached: true, // an interrupt is for the bench, which then ends it in order
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
    return new Daemon(dataDir, child, serviceOf(dataDir, load));
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

  /** The address of the API of E2B's SDKs, for a daemon that serves it. */
  get compatibleUrl(): URL {
    const address = readPidFile(this.dataDir)?.compatibleAddress;
    if (address === undefined) throw new Error("the daemon does not serve the API of E2B's SDKs");
    return new URL(address);
  }

  /** Where its metrics are. */
  get metricsAddress(): string {
    const address = readPidFile(this.dataDir)?.metricsAddress;
    if (address === undefined) throw new Error('the daemon serves no metrics');
    return address;
  }

  /** Resolves once nothing is under way any more. */
  async calm(): Promise<void> {
    await untilCalm([this.pid, this.spawnerPid]);
  }

  /** Ends it, its helpers and every sandbox, and removes its folder. */
  async dispose(): Promise<void> {
    await this.service.close();
    await endAll(this.dataDir);
  }
}

/** Of the daemon that runs on the folder. */
export const serviceOf = (dataDir: string, load: Load): Service => {
  const address = readPidFile(dataDir)?.address;
  if (address === undefined) throw new Error('the daemon left no note of its address');
  return new Service(
    Number(new URL(address).port),
    readFileSync(join(dataDir, 'keys', 'tenant.key'), 'utf8').trim(),
    load,
  );
};

/**
 * Ends the daemon of the folder, if it runs, and its sandboxes; removes the folder. May be
 * repeated.
 */
export const endAll = async (dataDir: string): Promise<void> => {
  const ending = retirements.get(dataDir) ?? stopAll(dataDir);
  retirements.set(dataDir, ending);
  await ending;
  living.delete(dataDir);
};

/** For a bench that is interrupted: ends every daemon that is still there. */
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

const retirements = new Map<string, Promise<void>>();

/** Of a daemon that is started next; given back by `endAll`. */
export const newDataDir = (): string => {
  const dataDir = temporaryFolder();
  living.add(dataDir);
  return dataDir;
};

const living = new Set<string>();

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
