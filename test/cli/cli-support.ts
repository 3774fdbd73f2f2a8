import type { ProcessDriver } from '../../src/contracts/processes.ts';
import { NoProcesses } from '../support/fakes/nothing-inside.ts';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex, Readable, Writable } from 'node:stream';
import { spawn as spawnPty, type IPty } from 'node-pty';
import { runCommandLine } from '../../src/cli/program.ts';
import type { ExecOutcome, ExecRequest } from '../../src/contracts/sandbox-driver.ts';
import { writePidFile } from '../../src/daemon/process/pid-file.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import type { SandboxFiles } from '../../src/contracts/files.ts';
import { createHttpServer } from '../../src/http/server/http-server.ts';
import { terminalUpgrades } from '../../src/http/terminal/terminal.ts';
import type {
  OpenTerminal,
  OpenTerminalRequest,
} from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import { programOf } from '../support/harness/built-program.ts';
import { rememberChild, rememberProcess } from '../../local-cluster/started-processes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { watchAnswers } from '../support/harness/watched-answers.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { anAdmission } from '../support/fakes/an-admission.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/** Program and arguments that run the command line. */
export const cliCommand = (): readonly string[] => programOf('cli/main');

/** A terminal that the service opened: a real shell of this machine behind it. */
export interface ServedTerminal {
  readonly request: OpenTerminalRequest;
  readonly pty: IPty;
  /** Bytes of output that were taken from it. */
  taken: number;
  /** As if its sandbox ended. */
  readonly endSandbox: () => void;
}

/**
 * The service over an engine of its own, whose commands and shells run on this machine, and a data
 * folder that names it.
 */
export interface CliDaemon {
  readonly operations: Engine;
  readonly dataDir: string;
  readonly url: string;
  readonly terminals: ServedTerminal[];
  /** Sandboxes that nobody gave back. */
  readonly left: () => readonly string[];
  readonly stopTerminals: () => Promise<void>;
  /** Breaks the connections off, as a way that is lost does. */
  readonly cut: () => void;
  readonly close: () => Promise<void>;
}

export const aCliDaemon = async ({
  replicas = 2,
  images = [],
  processes = new NoProcesses('there are none here'),
  files,
}: {
  readonly replicas?: number;
  /** Images that the driver has, beside `host`. */
  readonly images?: readonly string[];
  readonly processes?: ProcessDriver;
  /** In place of files in memory. */
  readonly files?: SandboxFiles;
} = {}): Promise<CliDaemon> => {
  const operations = anEngine({ images, files });
  const { driver } = operations;
  driver.onExec = (_id, ...call) => runHere(...call);
  driver.processes = processes;
  await operations.start();
  const [tenant, admin] = [
    await operations.key('default', 'default'),
    await operations.key('ops', 'root', 'admin'),
  ];
  await operations.createPool(operations.authenticate(tenant), {
    name: 'default',
    source: { templateName: 'default' },
    replicas,
    labels: {},
    annotations: {},
  });
  await operations.settled();
  const terminals: ServedTerminal[] = [];
  const openTerminal = async (request: OpenTerminalRequest): Promise<OpenTerminal> =>
    shellHere(request, terminals);
  const clock = systemClock();
  const upgrades = terminalUpgrades({ operations: { openTerminal }, log: quietLog, clock });
  const clients = clientsOf({ operations, clock, log: quietLog });
  const http = createHttpServer({
    watchers: { log: quietLog, metrics: silentMetrics },
    terms: { clusterId: 'local', sunset: undefined },
    clients,
    admission: anAdmission({ clients }),
    operations,
    clock,
    upgrade: upgrades.upgrade,
  });
  const checkAnswers = watchAnswers(http.server);
  const { port } = await http.start({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${port}`;
  const dataDir = mkdtempSync(join(tmpdir(), 'sandpool-cli-'));
  mkdirSync(join(dataDir, 'keys'));
  writeFileSync(join(dataDir, 'keys/tenant.key'), `${tenant}\n`, { mode: 0o600 });
  writeFileSync(join(dataDir, 'keys/admin.key'), `${admin}\n`, { mode: 0o600 });
  writePidFile(dataDir, url); // of this very process
  return {
    operations,
    dataDir,
    url,
    terminals,
    left: () =>
      [...operations.sandboxes.values()]
        .filter(({ status }) => status === 'Running')
        .map(({ id }) => id),
    stopTerminals: upgrades.stop,
    cut: () => http.server.closeAllConnections(),
    close: async () => {
      await upgrades.stop();
      for (const { pty } of terminals) kill(pty);
      await http.stop(1_000);
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
      checkAnswers();
    },
  };
};

/**
 * A daemon of its own for each test of the suite, and the command line in this process, as its
 * tenant.
 */
export const onACliDaemon = (): {
  readonly daemon: () => CliDaemon;
  readonly sandpool: (...args: readonly string[]) => Promise<CliEnd>;
} => {
  let running: CliDaemon | undefined;
  beforeEach(async () => {
    running = await aCliDaemon();
  });
  afterEach(() => running?.close());
  const daemon = (): CliDaemon => {
    if (!running) throw new Error('it is started before each test');
    return running;
  };
  return { daemon, sandpool: (...args) => cliHere(args, { SANDPOOL_DATA_DIR: daemon().dataDir }) };
};

export interface CliEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCli {
  readonly child: ChildProcess;
  /** What it wrote so far. */
  readonly text: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<CliEnd>;
}

/** The command line as a process of its own, with nothing in its environment but what is given. */
export const startCli = (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input?: string,
): RunningCli => {
  const [program = '', ...more] = cliCommand();
  const child = spawn(program, [...more, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), ...env },
    stdio: 'pipe',
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text.stdout += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    text.stderr += part;
  });
  rememberChild(`sandpool ${args.join(' ')}`, child, () => text.stdout + text.stderr);
  child.stdin.on('error', () => {});
  if (input !== undefined) child.stdin.end(input);
  return {
    child,
    text,
    ended: once(child, 'close').then(([code]: (number | null)[]) => ({
      code: code ?? null,
      ...text,
    })),
  };
};

export const cli = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<CliEnd> => await startCli(args, env, input).ended;

/** The command line in this process: faster, for what needs no process of its own. */
export const cliHere = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliEnd> => {
  const text = { stdout: '', stderr: '' };
  const into = (name: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        text[name] += chunk.toString();
        done();
      },
    });
  const code = await runCommandLine(args, {
    env: { HOME: tmpdir(), ...env },
    stdin: Readable.from([]),
    stdout: into('stdout'),
    stderr: into('stderr'),
  });
  return { code, ...text };
};

/** The command line in a terminal of its own. */
export interface CliInTerminal {
  readonly pty: IPty;
  readonly output: () => string;
  readonly shows: (what: string | RegExp) => Promise<void>;
  readonly ended: Promise<number>;
}

/**
 * Runs `stty -g` after the command, so that `AFTER[...]` in the output tells whether its terminal
 * was put back; it ends once that was read, for node-pty may lose what it has not read by then.
 */
export const startCliInTerminal = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  size = { cols: 90, rows: 30 },
): CliInTerminal => {
  const words = [...cliCommand(), ...args]
    .map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
    .join(' ');
  const pty = spawnPty(
    '/bin/sh',
    [
      '-c',
      `echo "BEFORE[$(stty -g)]"; ${words}; code=$?; echo "AFTER[$(stty -g)]"; read -r _; exit $code`,
    ],
    {
      ...size,
      env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), TERM: 'xterm', ...env },
    },
  );
  let output = '';
  let isRead = false;
  pty.onData((part) => {
    output += part;
    if (isRead || !/AFTER\[.*?\]/.test(output)) return;
    isRead = true;
    pty.write('\n');
  });
  let code: number | undefined;
  const ended = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode }) => resolve((code = exitCode)));
  });
  rememberProcess({
    name: `terminal: sandpool ${args.join(' ')}`,
    pid: pty.pid,
    output: () => output,
    end: () => (code === undefined ? undefined : `exit code ${code}`),
  });
  return {
    pty,
    output: () => output,
    shows: async (what) =>
      await eventually(
        () => (typeof what === 'string' ? output.includes(what) : what.test(output)),
        `the terminal shows ${String(what)}`,
        () => output.slice(-600),
      ),
    ended,
  };
};

/** Whether the terminal's settings after the command are those from before. */
export const terminalWasRestored = (output: string): boolean => {
  const [before, after] = [/BEFORE\[(.*?)\]/.exec(output)?.[1], /AFTER\[(.*?)\]/.exec(output)?.[1]];
  return before !== undefined && before !== '' && before === after;
};

const runHere = async (
  request: ExecRequest,
  signal: AbortSignal,
): Promise<Partial<ExecOutcome>> => {
  const [file = '', ...args] = request.argv;
  const child = spawn(file, args, {
    signal,
    stdio: 'pipe',
    timeout: request.timeoutMs,
    killSignal: 'SIGKILL',
  });
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on('data', (part: Buffer) => stdout.push(part));
  child.stderr.on('data', (part: Buffer) => stderr.push(part));
  child.stdin.on('error', () => {}).end(request.stdin ?? '');
  const code = await once(child, 'close').then(
    ([exitCode]: (number | null)[]) => exitCode ?? null,
    () => 127,
  );
  return {
    stdout: Buffer.concat(stdout),
    stderr: Buffer.concat(stderr),
    exitCode: code ?? 124,
    timedOut: code === null,
  };
};

/**
 * Waits to be ended once it has told its exit code, for node-pty may lose what it has not read at
 * an end.
 */
const SHELL = String.raw`/bin/bash --norc --noprofile; code=$?; printf '\035%s\035' "$code"; read -r _`;
const EXIT_MARK = 0x1d;

const shellHere = (request: OpenTerminalRequest, terminals: ServedTerminal[]): OpenTerminal => {
  const pty = spawnPty('/bin/sh', ['-c', SHELL], {
    cols: request.cols,
    rows: request.rows,
    encoding: null,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm', PS1: 'INSIDE$ ', HISTFILE: '' },
  });
  let endSandbox = (): void => {};
  const ended = new Promise<'sandbox-ended'>((resolve) => {
    endSandbox = () => {
      resolve('sandbox-ended');
    };
  });
  const served: ServedTerminal = { request, pty, taken: 0, endSandbox };
  terminals.push(served);
  const stream = new Duplex({
    read: () => pty.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      if (!isOver) pty.write(chunk);
      done();
    },
  });
  let isOver = false;
  let isKilled = false;
  const exit = new Promise<number>((resolve) => {
    let marked = Buffer.alloc(0);
    const end = (code: number): void => {
      if (isOver) return;
      isOver = true;
      isKilled = code === 137; // here it stands for a sandbox without memory
      stream.push(null);
      resolve(code);
    };
    pty.onData((chunk: unknown) => {
      if (!Buffer.isBuffer(chunk)) return;
      served.taken += chunk.length;
      const at = marked.length > 0 ? 0 : chunk.indexOf(EXIT_MARK);
      const output = at === -1 ? chunk : chunk.subarray(0, at);
      if (output.length > 0 && !stream.push(output) && at === -1) pty.pause();
      if (at === -1) return;
      marked = Buffer.concat([marked, chunk.subarray(at)]);
      if (marked.indexOf(EXIT_MARK, 1) === -1) return;
      end(Number.parseInt(marked.toString('latin1', 1), 10));
      kill(pty);
    });
    pty.onExit(({ exitCode, signal }) => {
      end(signal ? 128 + signal : exitCode);
    });
  });
  return {
    terminal: {
      stream,
      exit,
      get outOfMemory() {
        return isKilled;
      },
      resize: (cols, rows) => pty.resize(cols, rows),
      signal: (name) => pty.kill(`SIG${name}`),
      close: () => kill(pty),
    },
    touch: () => {},
    ended,
    close: () => kill(pty),
  };
};

const kill = (pty: IPty): void => {
  try {
    pty.kill('SIGKILL');
  } catch {
    // it has ended already
  }
};
