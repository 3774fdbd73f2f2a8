import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { KeptOutput } from '../../../local-cluster/kept-output.ts';
import { rememberChild } from '../../../local-cluster/started-processes.ts';
import { readPidFile } from '../../../src/daemon/process/pid-file.ts';
import { eventually, NEVER_COMES_MS } from './eventually.ts';
import { compatibleClient, HttpClient } from './http-client.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** By default there is one pool, of fixed size. */
const FLAGS: readonly string[] = [
  ...['--default-pool-max-replicas', '0'],
  ...['--interpreter-pool-max-replicas', '0'],
];
/** As shipped: envs size the default pool and the code interpreter's. */
export const AS_SHIPPED: readonly string[] = [
  ...['--default-pool-max-replicas', '64'],
  ...['--interpreter-pool-max-replicas', '64'],
];

/** Polls quickly at first, then less often. */
const OFTEN_FOR_MS = 1_000;
const SELDOM_MS = 75;

export interface DaemonTerms {
  /** Another build's folder. */
  readonly root?: string;
  /** Added to this process's variables. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface CommandLineEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface DaemonRun {
  readonly address: string;
  readonly port: number;
  readonly process: ChildProcess;
  /** So far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
}

/**
 * The built daemon as a process. `kill` is kill -9, `start` starts it again on the same folder, and
 * `dispose` ends everything.
 */
export class DaemonUnderTest {
  readonly dataDir: string;
  readonly #flags: readonly string[];
  readonly #root: string;
  readonly #env: Readonly<Record<string, string>>;
  #run: DaemonRun | undefined;
  readonly #clients: HttpClient[] = [];

  private constructor(
    flags: readonly string[],
    folder: string,
    { root = ROOT, env = {} }: DaemonTerms,
  ) {
    this.#flags = flags;
    this.dataDir = folder;
    [this.#root, this.#env] = [root, env];
  }

  /** By default on a new folder. */
  static async start(
    flags: readonly string[] = [],
    folder = mkdtempSync(join(tmpdir(), 'sandpool-daemon-')),
    terms: DaemonTerms = {},
  ): Promise<DaemonUnderTest> {
    const daemon = new DaemonUnderTest(flags, folder, terms);
    try {
      await daemon.start();
    } catch (error) {
      await daemon.dispose();
      throw error;
    }
    return daemon;
  }

  get run(): DaemonRun {
    if (!this.#run) throw new Error('the daemon is not running');
    return this.#run;
  }

  get tenantKey(): string {
    return readFileSync(join(this.dataDir, 'keys', 'tenant.key'), 'utf8').trim();
  }
  get adminKey(): string {
    return readFileSync(join(this.dataDir, 'keys', 'admin.key'), 'utf8').trim();
  }

  async metrics(): Promise<string> {
    const address = readPidFile(this.dataDir)?.metricsAddress;
    if (address === undefined) throw new Error('the daemon serves no metrics');
    return await (await fetch(address)).text();
  }

  client(key = this.tenantKey): HttpClient {
    const client = new HttpClient(this.run.port, key);
    this.#clients.push(client);
    return client;
  }

  /** Needs a daemon that serves E2B's SDKs. */
  get compatibleUrl(): string {
    const address = readPidFile(this.dataDir)?.compatibleAddress;
    if (address === undefined) throw new Error("the daemon does not serve E2B's SDKs");
    return address;
  }

  compatibleClient(key = this.tenantKey): HttpClient {
    const client = compatibleClient(Number(new URL(this.compatibleUrl).port), key);
    this.#clients.push(client);
    return client;
  }

  async start(more: readonly string[] = []): Promise<DaemonRun> {
    const child = spawn(
      process.execPath,
      [
        join(this.#root, 'dist/cli/main.js'),
        'serve',
        '--data-dir',
        this.dataDir,
        '--listen',
        '127.0.0.1:0',
        '--metrics-listen',
        '127.0.0.1:0',
        '--compatible-api-listen',
        'none',
        ...FLAGS,
        ...this.#flags,
        ...more,
      ],
      {
        cwd: this.#root,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...this.#env },
      },
    );
    const [out, err] = [
      KeptOutput.of(65_536, child.stdout),
      KeptOutput.of(1_048_576, child.stderr),
    ];
    rememberChild('daemon', child, () => out.text + err.text);
    const deadline = performance.now() + NEVER_COMES_MS;
    while (!out.text.includes('Sandpool is ready')) {
      if (child.exitCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL');
        throw new Error(
          `the daemon did not start (exit code ${child.exitCode}): ${out.text}${err.text.slice(-4_000)}`,
        );
      }
      const signal = AbortSignal.timeout(NEVER_COMES_MS);
      await Promise.race([
        once(child.stdout, 'data', { signal }),
        once(child, 'exit', { signal }),
      ]).catch(() => undefined);
    }
    const address = readPidFile(this.dataDir)?.address ?? '';
    this.#run = {
      address,
      port: Number(new URL(address).port),
      process: child,
      stdout: () => out.text,
      stderr: () => err.text,
    };
    return this.#run;
  }

  /** Resolves with its exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    return await this.#end(signal);
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#run?.process;
    this.#run = undefined;
    for (const client of this.#clients.splice(0)) client.close();
    if (!child || child.exitCode !== null || child.signalCode !== null)
      return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    return child.exitCode;
  }

  /**
   * In this process: a process of its own takes 0.2 s of a processor to start, and to stop all 0.6
   * s.
   */
  async cli(args: readonly string[]): Promise<CommandLineEnd> {
    if (this.#root !== ROOT) return await this.cliProcess(args);
    const text = { stdout: '', stderr: '' };
    const into = (name: 'stdout' | 'stderr'): Writable =>
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          text[name] += chunk.toString();
          done();
        },
      });
    const { runCommandLine } = await builtCommandLine();
    const code = await runCommandLine(args, {
      env: { ...process.env, SANDPOOL_DATA_DIR: this.dataDir },
      stdin: Readable.from([]),
      stdout: into('stdout'),
      stderr: into('stderr'),
    });
    return { code, ...text };
  }

  async cliProcess(args: readonly string[]): Promise<CommandLineEnd> {
    const child = spawn(process.execPath, [join(this.#root, 'dist/cli/main.js'), ...args], {
      cwd: this.#root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, SANDPOOL_DATA_DIR: this.dataDir },
    });
    rememberChild(`sandpool ${args.join(' ')}`, child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    await once(child, 'close');
    return { code: child.exitCode, stdout, stderr };
  }

  async dispose(): Promise<void> {
    if (!existsSync(this.dataDir)) return;
    const { code, stderr } = await this.cli(['stop', '--all']);
    await this.#end('SIGTERM');
    for (const name of readdirSync(this.dataDir))
      rmSync(join(this.dataDir, name), { recursive: true, force: true, maxRetries: 5 });
    if (!isMountPoint(this.dataDir)) rmSync(this.dataDir, { recursive: true, maxRetries: 5 });
    if (code !== 0) throw new Error(`sandpool stop --all ended with ${code}: ${stderr}`);
  }
}

/** Like `eventually`, but polls less often after a second, since each look costs both sides. */
export const within = async <T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  seen?: () => unknown,
): Promise<T> => {
  const began = performance.now();
  let found: T | undefined;
  await eventually(
    async () => {
      if (performance.now() - began > OFTEN_FOR_MS) await pause(SELDOM_MS);
      return (found = await look()) !== undefined && found !== false;
    },
    what,
    seen,
  );
  return found!; // it was found, else `eventually` rejects
};

/** Loaded when a test first needs it. */
const builtCommandLine = async (): Promise<typeof import('../../../src/cli/program.ts')> =>
  (await import(join(ROOT, 'dist/cli/program.js'))) as typeof import('../../../src/cli/program.ts');

const isMountPoint = (folder: string): boolean =>
  statSync(folder).dev !== statSync(join(folder, '..')).dev;
