import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import {
  type Config,
  ConfigFaults,
  dataDirFrom,
  isAskedFor,
  loadConfig,
  type LoadedConfig,
  type NamedTexts,
} from './daemon/config/config.ts';
import { environment } from './daemon/config/environment.ts';
import { createDaemon, type DaemonTerms } from './daemon/create-daemon.ts';
import { readPidFile, removePidFile, writePidFile } from './daemon/process/pid-file.ts';
import { runDaemon } from './daemon/process/run-daemon.ts';
import { endFaulty } from './lib/fault-scope.ts';
import { comeFirst } from './lib/processes.ts';
import { createLog, lineOutput, type ProcessLog } from './daemon/process/log.ts';
import { readyText, type StartUp, stoppedText } from './daemon/process/start-up-text.ts';

export interface ServeOptions {
  /** The command's options by name, as commander gives them; see `configFlags`. */
  readonly argvOptions: NamedTexts;
}

/**
 * Runs the daemon in this process, and ends the process: with 0 after SIGINT or SIGTERM, with 1 if
 * the daemon cannot start or continue. Prints text for people to standard output, errors and logs
 * to standard error.
 */
export const serve = async ({ argvOptions }: ServeOptions): Promise<void> => {
  const loaded = configOrFaults(argvOptions);
  if (!loaded) {
    process.exitCode = 1;
    return;
  }
  const { config, origins } = loaded;
  const replica = `${config.replica ?? hostname()}-${randomBytes(3).toString('hex')}`;
  const log = createLog(
    config.logLevel === 'auto' ? (process.stderr.isTTY ? 'warn' : 'info') : config.logLevel,
    { replica },
  );
  const out =
    config.audit.stdout === 'on'
      ? lineOutput(1, () => {
          log.warn({}, 'audit-copy-dropped');
        })
      : undefined;
  const exit = (code: number): never => {
    out?.flushSync();
    log.flush();
    process.exit(code);
  };
  const crash =
    (event: 'uncaught-exception' | 'unhandled-rejection') =>
    (error: unknown): void => {
      log.error({ error }, event);
      if (endFaulty(error)) return;
      process.stderr.write(`Sandpool stops: ${messageOf(error)}\n`);
      exit(1);
    };
  process.on('uncaughtException', crash('uncaught-exception'));
  process.on('unhandledRejection', crash('unhandled-rejection'));
  process.stdout.on('error', () => undefined); // its reader is gone; the daemon goes on without
  exit(
    await run(config, {
      log,
      replica,
      auditCopy: out?.write,
      given: new Set([
        ...(isAskedFor(origins['metrics.listen']) ? (['metrics'] as const) : []),
        ...(isAskedFor(origins['compatibleApi.listen']) ? (['compatibleApi'] as const) : []),
      ]),
      exit,
    }),
  );
};

interface RunTerms extends Omit<DaemonTerms, 'stopped'> {
  readonly log: ProcessLog;
  readonly exit: (code: number) => never;
}

/** Notes signals from its making to `end`, so that what waits meanwhile can be called off. */
class EarlySignals {
  readonly #controller = new AbortController();
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.first ??= signal;
    this.#controller.abort(new Error('told to stop'));
  };
  first: NodeJS.Signals | undefined;

  constructor() {
    process.on('SIGINT', this.#onSignal).on('SIGTERM', this.#onSignal);
  }

  get stopped(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    process.off('SIGINT', this.#onSignal).off('SIGTERM', this.#onSignal);
  }
}

const run = async (config: Config, { exit, ...terms }: RunTerms): Promise<number> => {
  const { log } = terms;
  const { dataDir } = config;
  const early = new EarlySignals();
  if (config.assembly === 'embedded') comeFirst();
  try {
    const daemon = await createDaemon(config, { ...terms, stopped: early.stopped });
    daemon.failed.then(
      (error: Error) => {
        process.stderr.write(`Sandpool stops: ${error.message}\n`);
      },
      () => undefined,
    );
    let startUp: StartUp | undefined;
    return await runDaemon(daemon, {
      log,
      exit,
      signals: process,
      signalled: () => {
        early.end();
        return early.first;
      },
      shutdownDelayMs: config.shutdownDelay,
      after: (ms, due) => {
        const timer = setTimeout(due, ms);
        return () => {
          clearTimeout(timer);
        };
      },
      onReady: ({ address, consoleLink, ...others }) => {
        writePidFile(dataDir, address, others);
        startUp = {
          ...startUpOf(config, address),
          ...(consoleLink === undefined ? {} : { consoleLink }),
        };
        process.stdout.write(readyText(startUp));
      },
      onStopped: ({ sandboxesLeft }) => {
        removePidFile(dataDir);
        process.stdout.write(stoppedText(sandboxesLeft, startUp ?? startUpOf(config, '')));
      },
    });
  } catch (error) {
    if (early.stopped.aborted && error === early.stopped.reason) {
      log.info({ signal: early.first }, 'stopped-before-start');
      return 0;
    }
    explainFailedStart(error, dataDir, log);
    return 1;
  } finally {
    early.end();
  }
};

const explainFailedStart = (error: unknown, dataDir: string, log: ProcessLog): void => {
  const other = readPidFile(dataDir);
  if (other && other.pid !== process.pid) {
    process.stderr.write(
      `A daemon already runs on ${dataDir}: ${other.address} (pid ${other.pid})\n`,
    );
    return;
  }
  // a person gets the line below
  if (!process.stderr.isTTY) log.error({ error }, 'start-failed');
  process.stderr.write(`Sandpool can't start: ${messageOf(error)}\n${adviceOn(error)}`);
};

const configOrFaults = (argvOptions: NamedTexts): LoadedConfig | undefined => {
  try {
    return loadConfig({ argvOptions });
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    process.stderr.write(`${error.text}\n`);
    return undefined;
  }
};

const startUpOf = (config: Config, address: string): StartUp => ({
  address,
  dataDir: config.dataDir,
  usualDataDir: dataDirFrom(environment()) === config.dataDir,
  command: fileURLToPath(new URL('../bin/sandpool', import.meta.url)),
  workingDir: process.cwd(),
  poolName: config.defaultPool.name,
  isTerminal: process.stdout.isTTY,
  secretsDir: config.secretsDir,
});

/** Listeners besides the REST API's name their setting themselves. */
const adviceOn = (error: unknown): string =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    ? '  another program has this address; choose another one: --listen HOST:PORT\n'
    : '';

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
