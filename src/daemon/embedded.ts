import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Assembly, AssemblyTerms } from './assembly/assembly.ts';
import { RecentAuditRing } from '../services/audit/recent-audit-ring.ts';
import type { Config } from './config/config.ts';
import { sqliteAnswerRows } from '../embedded/store/answer-rows.ts';
import { embeddedBackup } from '../embedded/store/backup.ts';
import { inProcessCoordination } from '../embedded/coordination/coordination.ts';
import { keptClock, WORTH_MS } from '../embedded/store/clock-file.ts';
import { lockDataDir } from '../embedded/store/data-lock.ts';
import { diskRoom, type DiskRoom } from '../embedded/store/disk-room.ts';
import { openDatabase, type Database } from '../embedded/store/database.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import { sqliteHistory } from '../embedded/store/history.ts';
import { sqliteRecordStore } from '../embedded/store/record-store.ts';
import { sqliteDeadLetters } from '../embedded/store/dead-letters.ts';
import { KeptAnswers } from '../embedded/store/kept-answers.ts';
import { requireWholeRestore } from '../embedded/store/saved-database.ts';
import { sqlitePullSecrets } from '../embedded/store/pull-secrets.ts';
import { EmbeddedSandboxDriver } from '../embedded/driver/sandbox-driver.ts';
import { sqliteInstanceRecords } from '../embedded/store/sqlite-instance-records.ts';
import { templateFolder } from '../embedded/template-folder.ts';
import { VolumeDirectories } from '../embedded/driver/volume-directories.ts';
import { version } from './process/version.ts';
import { ensureFirstKeys, readOrMakePepper } from './first-start.ts';
import { namespaceOf } from './assembly/namespaces.ts';

/** Rejects if the data folder is in use. */
export const openEmbedded = async (
  config: Config,
  { log, replica, metrics }: Pick<AssemblyTerms, 'log' | 'replica' | 'metrics'>,
): Promise<Assembly> => {
  const { dataDir } = config;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockDataDir(dataDir);
  const { clock, aheadMs, stop: stopClock } = keptClock(join(dataDir, 'clock.json'), log);
  measureDisk(metrics, dataDir);
  try {
    requireWholeRestore(dataDir);
    const pepper = readOrMakePepper(dataDir);
    const stores = await openStores(config, { log, clock, metrics, pepper });
    const { database, history, answers, pullSecrets } = stores;
    const volumes = new VolumeDirectories(
      config.volumes.provider === 'none' ? [] : config.volumes.directories,
    );
    const driver = driverOf(config, { log, clock, volumes, database });
    return {
      clock,
      driver,
      history,
      pepper,
      ensureFirstKeys: firstKeysOf(config, { pepper, clock }),
      startsAtOnce: 32,
      // slow starts keep processors busy; one tenant may take all places but one
      startPlaces: { first: 1 + Math.max(4, 2 * availableParallelism()), most: 256 },
      makesDefaultPool: true,
      reflectors: () => [],
      problems: () => roomText(dataDir, 'full'),
      warnings: () => [...roomText(dataDir, 'low'), ...clockText(aheadMs())],
      onOutdated: () => undefined,
      grantBy: () => undefined, // only the daemon writes pools here
      records: sqliteRecordStore(database, log),
      coordination: inProcessCoordination(clock, answers, replica),
      templates: templateFolder(config.templatesDir),
      volumes,
      pullSecrets,
      recentAudit: new RecentAuditRing(),
      deadLetters: sqliteDeadLetters(database, clock),
      backup: embeddedBackup({ database, dataDir, clock }),
      failed: database.failed,
      start: async () => {
        await answers.start();
        await pullSecrets.start();
        history.start();
      },
      stop: async () => {
        await driver.stop();
        answers.stop();
        await history.stop();
        await database.close();
        stopClock();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
};

const openStores = async (
  config: Config,
  {
    log,
    clock,
    metrics,
    pepper,
  }: {
    readonly log: Log;
    readonly clock: Clock;
    readonly metrics: Metrics;
    readonly pepper: Buffer;
  },
) => {
  const watched = { log, clock, metrics, version: version() };
  const database = await openDatabase(join(config.dataDir, 'sandpool.db'), watched);
  const bounds = config.history;
  const retentionMs = bounds.retention;
  const history = sqliteHistory(database, { clock, log, metrics, bounds, retentionMs });
  const rows = sqliteAnswerRows(database);
  const answers = new KeptAnswers({ rows, clock, log, bounds: config.keptAnswers });
  const pullSecrets = sqlitePullSecrets(database, pepper);
  return { database, history, answers, pullSecrets };
};

const driverOf = (
  config: Config,
  {
    log,
    clock,
    volumes,
    database,
  }: {
    readonly log: Log;
    readonly clock: Clock;
    readonly volumes: VolumeDirectories;
    readonly database: Database;
  },
): EmbeddedSandboxDriver =>
  new EmbeddedSandboxDriver({
    dataDir: config.dataDir,
    log,
    clock,
    volumes,
    records: sqliteInstanceRecords(database),
    launcherPath: fileURLToPath(new URL('../../native/build-output/launcher', import.meta.url)),
    bwrapPath: '/usr/bin/bwrap',
    uidRange: config.uidRange,
    pidsMax: config.pidsMax,
    parallelStarts: config.parallelStarts,
    isolation: config.isolation,
    logs: { ...config.logs, retentionMs: config.history.retention },
    spawnerEntry: { command: [process.execPath, ...loaderFlags(), programOf('spawner')] },
    images: {
      directories: config.images.directories,
      unpackedDir: config.images.unpackedDir,
      maxBytes: config.images.maxBytes,
      unusedAfterMs: config.images.unusedAfter,
      unpackerCommand: [process.execPath, ...loaderFlags(), programOf('images/unpacker')],
    },
  });

const firstKeysOf =
  (
    { dataDir, keys, namespacePattern }: Config,
    { pepper, clock }: { readonly pepper: Buffer; readonly clock: Clock },
  ): Assembly['ensureFirstKeys'] =>
  async (apiKeys) => {
    const tenant = {
      namespace: namespaceOf(namespacePattern, 'default'),
      team: 'default',
      user: 'default',
    };
    const lifetimeMs = keys.defaultLifetime;
    await ensureFirstKeys({ dataDir, apiKeys, pepper, now: clock.now(), lifetimeMs, tenant });
  };

const measureDisk = (metrics: Metrics, dataDir: string): void => {
  const measured = (of: 'freeBytes' | 'bytes') => () => {
    const room = roomOf(dataDir);
    return typeof room === 'string' ? [] : [{ labels: {}, value: room[of] }];
  };
  metrics.read('sandpool_disk_free_bytes', measured('freeBytes'));
  metrics.read('sandpool_disk_bytes', measured('bytes'));
};

const roomOf = (dataDir: string): DiskRoom | string => {
  try {
    return diskRoom(dataDir);
  } catch (error) {
    return `the data folder cannot be accessed: ${String(error)}`;
  }
};

const roomText = (dataDir: string, of: 'low' | 'full'): readonly string[] => {
  const room = roomOf(dataDir);
  if (typeof room === 'string') return of === 'full' ? [room] : [];
  const { state, text } = room;
  if (state !== of) return [];
  return [`the disk of the data folder is ${of === 'full' ? 'full' : 'nearly full'}: ${text}`];
};

const clockText = (aheadMs: number): readonly string[] =>
  Math.abs(aheadMs) <= WORTH_MS
    ? []
    : [
        `the daemon's clock is ${Math.round(Math.abs(aheadMs) / 1_000)} s ` +
          `${aheadMs > 0 ? 'ahead of' : 'behind'} the machine's: sandpool doctor says what to do`,
      ];

const programOf = (folder: string): string => {
  const here = import.meta.url;
  return fileURLToPath(
    new URL(`../embedded/${folder}/main${here.slice(here.lastIndexOf('.'))}`, here),
  );
};

const loaderFlags = (): readonly string[] =>
  import.meta.url.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : [];
