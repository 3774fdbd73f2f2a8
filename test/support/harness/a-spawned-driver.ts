import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KeptOutput, endOfFile } from '../../../local-cluster/kept-output.ts';
import { rememberProcess } from '../../../local-cluster/started-processes.ts';
import {
  EmbeddedSandboxDriver,
  type EmbeddedDriverOptions,
} from '../../../src/embedded/driver/sandbox-driver.ts';
import { connectSpawner } from '../../../src/embedded/driver/spawner-process.ts';
import {
  readNote,
  type InstanceNote,
  type RunningNote,
} from '../../../src/embedded/spawner/sandbox/notes.ts';
import { isAlive } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { pathsOf, type SpawnerConfig } from '../../../src/embedded/spawner/protocol.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { eventually } from './eventually.ts';
import { killIfAlive } from './kill-if-alive.ts';
import { programOf } from './built-program.ts';
import { MemoryInstanceRecords } from '../fakes/memory-instance-records.ts';
import { keptLog } from '../fakes/kept-log.ts';

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));
export const LAUNCHER = join(REPOSITORY, 'native/build-output/launcher');
export const spawnerCommand = (): readonly string[] => programOf('embedded/spawner/main');

export const buildLauncher = (): void => {
  execFileSync(join(REPOSITORY, 'native/build'), { stdio: 'ignore' });
};

const KEPT_LOG = 2 ** 16;

export interface SpawnedDriver {
  readonly driver: EmbeddedSandboxDriver;
  readonly records: MemoryInstanceRecords;
  readonly dataDir: string;
  readonly config: SpawnerConfig;
  /** On the same folder and records, as after a restart. */
  again(part?: Partial<EmbeddedDriverOptions>): EmbeddedSandboxDriver;
  /** The command starts a spawner if none lives. */
  connect(command?: readonly string[]): Promise<Socket>;
  spawnerPid(): number;
  noteOf(id: string): InstanceNote;
  runningOf(id: string): RunningNote;
  /** Also ends every sandbox, and removes the folder. */
  close(): Promise<void>;
}

export const aSpawnedDriver = (part: Partial<EmbeddedDriverOptions> = {}): SpawnedDriver => {
  const dataDir = part.dataDir ?? mkdtempSync(join(tmpdir(), 'sandpool-test-'));
  const records = new MemoryInstanceRecords();
  const log = new KeptOutput(KEPT_LOG);
  let isClosed = false;
  rememberSpawner({ dataDir, log, isClosed: () => isClosed });
  const options: EmbeddedDriverOptions = {
    dataDir,
    launcherPath: LAUNCHER,
    bwrapPath: '/usr/bin/bwrap',
    uidRange: { first: 2_000_000_000, count: 65_536 },
    pidsMax: 64,
    parallelStarts: 4,
    logs: { fileBytes: 1 << 20, totalBytes: 1 << 28, retentionMs: 3_600_000 },
    records,
    clock: systemClock(),
    log: keptLog(log),
    spawnerEntry: { command: spawnerCommand() },
    ...part,
  };
  const drivers: EmbeddedSandboxDriver[] = [];
  const again = (more: Partial<EmbeddedDriverOptions> = {}): EmbeddedSandboxDriver => {
    const driver = new EmbeddedSandboxDriver({ ...options, ...more });
    drivers.push(driver);
    return driver;
  };
  return {
    driver: again(),
    records,
    dataDir,
    config: {
      launcherPath: options.launcherPath,
      bwrapPath: options.bwrapPath,
      uidRange: options.uidRange,
      pidsMax: options.pidsMax,
      parallelStarts: options.parallelStarts,
      logs: options.logs,
    },
    again,
    connect: (command = spawnerCommand()) =>
      connectSpawner({ dataDir, command, clock: options.clock }),
    spawnerPid: () => lockHolder(pathsOf(dataDir).lock),
    noteOf: (id) => proven(readNote(join(dataDir, 'run', id), id).note),
    runningOf: (id) => proven(readNote(join(dataDir, 'run', id), id).running),
    close: async () => {
      await endAll(join(dataDir, 'run'));
      for (const driver of drivers) await driver.stop();
      // It outlives its daemon if processes of sandboxes have just ended.
      const pid = lockHolder(pathsOf(dataDir).lock);
      if (pid > 0) process.kill(pid, 'SIGTERM');
      await eventually(() => lockHolder(pathsOf(dataDir).lock) === 0, 'the spawner has ended');
      isClosed = true;
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
};

/** Log and complaints of the spawner. */
const rememberSpawner = ({
  dataDir,
  log,
  isClosed,
}: {
  readonly dataDir: string;
  readonly log: KeptOutput;
  readonly isClosed: () => boolean;
}): void => {
  const complaints = join(dataDir, 'spawner.err');
  rememberProcess({
    name: `spawner and driver on ${dataDir}`,
    output: () => log.text + (existsSync(complaints) ? endOfFile(complaints) : ''),
    end: () => (isClosed() ? 'closed' : undefined),
  });
};

/** 0 without one. Reading all processes' links is slow, so spawners come first. */
const lockHolder = (lock: string): number => {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const spawners = pids.filter((pid) => nameOf(pid) === 'sandpool-spawne'); // 15 characters at most
  const holder = [...spawners, ...pids].find(
    (pid) => linksOf(pid).includes(lock) && nameOf(pid) !== 'flock',
  );
  return Number(holder ?? 0);
};

const nameOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return ''; // it has ended
  }
};

const linksOf = (pid: string): readonly string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  } catch {
    return [];
  }
};

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};

/** The spawner cleans up after them. */
const endAll = async (folder: string): Promise<void> => {
  await eventually(() => {
    const ids = existsSync(folder) ? readdirSync(folder) : [];
    for (const id of ids) {
      const { running } = readNote(join(folder, id), id);
      if (running && isAlive(running.init)) killIfAlive(running.init.pid);
    }
    return ids.length === 0;
  }, 'all sandboxes are gone');
};

export const isOver = (note: InstanceNote, running: RunningNote): boolean =>
  !isAlive(note.outer) && !isAlive(running.init);

const proven = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('there is no such note');
  return value;
};
