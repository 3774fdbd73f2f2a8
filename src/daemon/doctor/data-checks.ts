import { existsSync, readdirSync, statSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { diskRoom } from '../../embedded/store/disk-room.ts';
import { clockAheadMs, EARLIEST, WORTH_MS } from '../../embedded/store/clock-file.ts';
import { DataDirTaken, lockDataDir } from '../../embedded/store/data-lock.ts';
import {
  causeOf,
  type DatabaseFault,
  inspectDatabase,
} from '../../embedded/store/inspect-database.ts';
import { UNFINISHED_RESTORE } from '../../embedded/store/saved-database.ts';
import { type Check, codeOf, type Finding, ok, problem, warning } from './finding.ts';

/** By statfs type; locks and fsync of remote file systems are not reliable. */
const REMOTE: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9P'],
]);

export const dataFolder: Check = ({ config: { dataDir } }) => {
  const found = statOf(dataDir);
  if (!found) return ok('data folder', `${dataDir} does not exist yet: the first start creates it`);
  if (!found.isDirectory())
    return problem('data folder', `${dataDir} is not a folder`, 'name another with --data-dir DIR');
  if (found.uid !== process.getuid?.())
    return problem(
      'data folder',
      `${dataDir} belongs to another user (uid ${found.uid})`,
      'run this, and the daemon, as that user',
    );
  if ((found.mode & 0o077) !== 0)
    return warning(
      'data folder',
      `${dataDir} is open to others (mode ${(found.mode & 0o777).toString(8)})`,
      `chmod 700 ${dataDir}`,
    );
  return ok('data folder', dataDir);
};

export const diskSpace: Check = ({ config: { dataDir } }) => {
  const { type, state, text } = diskRoom(nearest(dataDir));
  const findings: Finding[] = [];
  const remote = REMOTE.get(type);
  if (remote !== undefined)
    findings.push(
      ...warning(
        'disk',
        `${dataDir} lies on ${remote}`,
        'the data folder must be on a local disk: choose another',
      ),
    );
  const at = `${text} at ${dataDir}`;
  const cure = 'free disk space: a full disk stops the daemon';
  if (state === 'full') findings.push(...problem('disk', at, cure));
  else if (state === 'low') findings.push(...warning('disk', at, cure));
  else findings.push(...ok('disk', text));
  return findings;
};

export const store: Check = ({ config: { dataDir }, daemon }) => {
  const file = join(dataDir, 'sandpool.db');
  if (daemon) return ok('store', 'held by the daemon');
  if (existsSync(join(dataDir, UNFINISHED_RESTORE)))
    return problem(
      'store',
      `a restore of ${dataDir} was interrupted`,
      'finish it: sandpool restore FILE',
    );
  if (!existsSync(file)) return ok('store', 'does not exist yet: the first start creates it');
  try {
    const lock = lockDataDir(dataDir);
    try {
      const { size, fault } = inspectDatabase(file);
      return fault === undefined
        ? ok('store', `${(size / 2 ** 20).toFixed(1)} MiB, sound`)
        : problem('store', `${file}: ${fault.message}`, cureOf(fault.cause, file));
    } finally {
      lock.release();
    }
  } catch (error) {
    if (error instanceof DataDirTaken)
      return problem(
        'store',
        `another process holds ${dataDir}, and is not a daemon that answers`,
        `look for it: fuser -v ${join(dataDir, 'lock.db')}`,
      );
    if (codeOf(error) === 'EACCES' || codeOf(error) === 'ERR_SQLITE_ERROR')
      return problem(
        'store',
        `${file} can’t be opened: ${error instanceof Error ? error.message : String(error)}`,
        cureOf(causeOf(error, file), file),
      );
    throw error;
  }
};

const cureOf = (cause: DatabaseFault['cause'], file: string): string =>
  ({
    newer:
      'start the Sandpool that wrote it, or restore a backup of this version: ' +
      'sandpool restore FILE',
    older: 'remove it, or name another data folder with --data-dir DIR',
    foreign: 'name another data folder with --data-dir DIR, or move the file away',
    damaged: 'restore a backup: sandpool restore FILE',
    locked: `end the program that holds it: fuser -v ${file}`,
    'disk full': 'free space on its disk, and start the daemon: nothing acknowledged is lost',
    unreadable: 'run this as the daemon’s user; if it is, look for a fault of the disk: dmesg',
  })[cause];

export const keyFiles: Check = ({ config: { dataDir } }) => {
  const folder = join(dataDir, 'keys');
  if (!existsSync(folder))
    return existsSync(join(dataDir, 'sandpool.db'))
      ? problem(
          'keys',
          `${folder} is missing: no key is valid`,
          'restore a backup: sandpool restore FILE; otherwise the next start creates new ' +
            'first keys, and all others are invalid',
        )
      : [];
  const names = readdirSync(folder);
  const missing = ['pepper', 'admin.key', 'tenant.key'].filter((name) => !names.includes(name));
  if (missing.includes('pepper'))
    return problem(
      'keys',
      `${folder}/pepper is missing: no key is valid`,
      'restore a backup: sandpool restore FILE; otherwise delete the folder, and the next ' +
        'start creates new first keys',
    );
  const open = names.filter((name) => ((statOf(join(folder, name))?.mode ?? 0) & 0o077) !== 0);
  if (open.length > 0)
    return problem(
      'keys',
      `other users can read ${open.join(', ')} in ${folder}`,
      `chmod 600 ${folder}/*, and revoke keys that others may have read`,
    );
  if (missing.length > 0)
    return warning(
      'keys',
      `missing in ${folder}: ${missing.join(', ')}`,
      'the next start creates what is missing',
    );
  return ok('keys', folder);
};

/** Key lifetimes, timeouts and the order of lists depend on the clock. */
export const clock: Check = ({ config: { dataDir } }) => {
  const now = Date.now();
  if (now < EARLIEST)
    return problem(
      'clock',
      `it says ${new Date(now).toISOString()}`,
      'set it: timedatectl set-ntp true',
    );
  const latest = Math.max(
    0,
    ...['sandpool.db', 'sandpool.db-wal', 'daemon.json', 'keys/pepper'].map(
      (name) => statOf(join(dataDir, name))?.mtimeMs ?? 0,
    ),
  );
  const ahead = latest - now;
  if (ahead > WORTH_MS)
    return warning(
      'clock',
      `it says ${new Date(now).toISOString()}, and the data folder was written ` +
        `${Math.round(ahead / 1_000)} s later than that`,
      'let NTP set it: timedatectl set-ntp true',
    );
  const file = join(dataDir, 'clock.json');
  const daemonAheadMs = clockAheadMs(file);
  if (Math.abs(daemonAheadMs) > WORTH_MS)
    return warning(
      'clock',
      `the daemon’s is ${Math.round(Math.abs(daemonAheadMs) / 1_000)} s ` +
        `${daemonAheadMs > 0 ? 'ahead of' : 'behind'} the machine’s, which was set since`,
      `if the machine’s is right: sandpool stop && rm ${file} && sandpool serve`,
    );
  return ok('clock', new Date(now).toISOString());
};

const statOf = (path: string): Stats | undefined => {
  try {
    return statSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
};

const nearest = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearest(dirname(path));
