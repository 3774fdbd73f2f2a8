import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  type Stats,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Settings that programs of /usr need. None of them concerns the machine or its users. */
const WANTED = [
  /^ca-certificates(\.conf)?$/,
  /^debian_version$/,
  /^fonts$/,
  /^inputrc$/,
  /^java(-.+)?$/,
  /^magic(\.mime)?$/,
  /^mime\.types$/,
  /^os-release$/,
  /^perl$/,
  /^protocols$/,
  /^python3(\.\d+)?$/,
  /^services$/,
  /^terminfo$/,
] as const;
const WANTED_BELOW = ['ssl/openssl.cnf'] as const;
/** Names of files that are never shown, wherever they are. */
const SECRET =
  /passw|secret|private|credential|token|shadow|keystore|keytab|id_rsa|\.(key|p12|pfx)$/i;
/** Bounds for what is copied; the rest is left out. */
const MOST_FILES = 4_096;
const MOST_BYTES = 1 << 20;
const DEEPEST = 8;
const OPEN_FILE = 0o004;
const OPEN_FOLDER = 0o005;

export interface EtcCopy {
  /** The machine's /etc. */
  readonly from: string;
  readonly to: string;
  /** Writes a file of this path. */
  readonly put: (path: string, bytes: Buffer) => void;
}

/**
 * Copies the settings of toolchains from the machine's /etc, as they are now: Java, fonts, OpenSSL,
 * MIME types and the like. Leaves out what others may not read, what is named like a secret, and
 * links that lead elsewhere than into the same folder or /usr.
 */
export const copyToolchainEtc = (copy: EtcCopy): void => {
  const names = namesIn(copy.from).filter((name) => WANTED.some((wanted) => wanted.test(name)));
  const files = { left: MOST_FILES };
  for (const name of [...names, ...WANTED_BELOW]) copyEntry(copy, name, files);
};

const copyEntry = (copy: EtcCopy, path: string, files: { left: number }): void => {
  const [from, to] = [join(copy.from, path), join(copy.to, path)];
  const found = lstatSync(from, { throwIfNoEntry: false });
  if (!found || files.left === 0 || SECRET.test(path)) return;
  files.left -= 1;
  if (found.isSymbolicLink()) copyLink(copy, path);
  else if (isOpen(found, 'file') && found.size <= MOST_BYTES) {
    mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
    copy.put(to, readFileSync(from));
  } else if (isOpen(found, 'folder') && path.split('/').length <= DEEPEST) {
    mkdirSync(to, { recursive: true, mode: 0o755 });
    for (const name of namesIn(from)) copyEntry(copy, join(path, name), files);
  }
};

const isOpen = (found: Stats, kind: 'file' | 'folder'): boolean =>
  kind === 'file'
    ? found.isFile() && (found.mode & OPEN_FILE) === OPEN_FILE
    : found.isDirectory() && (found.mode & OPEN_FOLDER) === OPEN_FOLDER;

const copyLink = ({ from, to }: EtcCopy, path: string): void => {
  const target = readlinkSync(join(from, path));
  const own = join('/etc', path);
  const end = resolve(dirname(own), target);
  const isNear = [join('/etc', path.split('/')[0] ?? ''), '/usr'].some((folder) =>
    end.startsWith(`${folder}/`),
  );
  if (isNear && !existsOrIsLink(join(to, path))) {
    mkdirSync(dirname(join(to, path)), { recursive: true, mode: 0o755 });
    symlinkSync(target, join(to, path));
  }
};

const existsOrIsLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const namesIn = (folder: string): readonly string[] =>
  existsSync(folder) ? readdirSync(folder) : [];
