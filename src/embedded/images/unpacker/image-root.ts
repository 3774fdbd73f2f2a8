import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { join } from 'node:path';
import { ImageRefused } from './image-refused.ts';
import { groupFor, passwdFor } from './image-user.ts';
import type { ImageUser } from './orders.ts';

/**
 * The sandbox's root is its own file system; top-level folders of the image are bound read-only,
 * and links recreated. So no link of the image decides where /proc, /dev, /tmp and the home are
 * mounted.
 */

/** Never taken from the image. */
const OURS = new Set(['proc', 'dev', 'sys', 'tmp', '.sandpool']);
/** Its entries are bound one by one. */
const HOMES = 'home';
const OWN_HOME = 'sandbox';
const MAX_AT_TOP = 128;
const MAX_NAMES_BYTES = 1 << 20;

export interface RootView {
  readonly system: readonly string[];
  readonly taken: readonly string[];
}

/** Each sandbox has its own. */
const OWN_ETC = ['passwd', 'group', 'hosts', 'hostname', 'resolv.conf'] as const;

export const viewOfRoot = (root: string, etc: string): RootView => {
  const names = namesIn(root);
  const system = names
    .filter((name) => !OURS.has(name) && name !== HOMES && name !== 'etc')
    .flatMap((name) => shownAt(join(root, name), `/${name}`));
  const homes = isFolder(join(root, HOMES))
    ? namesIn(join(root, HOMES)).filter((name) => name !== OWN_HOME)
    : [];
  return {
    system: [
      ...system,
      '--dir',
      `/${HOMES}`,
      ...homes.flatMap((name) => shownAt(join(root, HOMES, name), `/${HOMES}/${name}`)),
      ...etcOptions(root, etc),
    ],
    taken: [...new Set([...names.filter((name) => !OURS.has(name)), HOMES, 'etc', 'proc', 'dev'])],
  };
};

/**
 * Own files are mounted over plain files of the image, the only possible targets. An image without
 * /etc gets all of them.
 */
const etcOptions = (root: string, etc: string): readonly string[] => {
  const has = isFolder(join(root, 'etc'));
  const files = OWN_ETC.filter((name) => !has || lstatOf(join(root, 'etc', name))?.isFile());
  return [
    ...(has ? ['--ro-bind', join(root, 'etc'), '/etc'] : ['--dir', '/etc']),
    ...files.flatMap((name) => ['--ro-bind', join(etc, name), `/etc/${name}`]),
  ];
};

export const writeOwnEtc = (
  etc: string,
  user: ImageUser,
  image: { readonly passwd: string; readonly group: string },
): void => {
  mkdirSync(etc, { recursive: true, mode: 0o755 });
  const contents: Readonly<Record<(typeof OWN_ETC)[number], string>> = {
    passwd: passwdFor(user, image.passwd),
    group: groupFor(user, image.group),
    hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
    hostname: 'sandbox\n',
    'resolv.conf': '',
  };
  for (const name of OWN_ETC) {
    // Running sandboxes keep what they have mounted.
    writeFileSync(join(etc, `${name}.new`), contents[name], { mode: 0o644 });
    renameSync(join(etc, `${name}.new`), join(etc, name));
  }
};

/** Only a plain file in a plain folder: a link could lead out of the image. */
export const readImageEtc = (root: string, name: 'passwd' | 'group'): string => {
  const path = join(root, 'etc', name);
  const found = isFolder(join(root, 'etc')) ? lstatOf(path) : undefined;
  return found?.isFile() && found.size <= MAX_NAMES_BYTES ? readFileSync(path, 'utf8') : '';
};

const shownAt = (path: string, place: string): readonly string[] => {
  const found = lstatOf(path);
  if (found?.isSymbolicLink()) return ['--symlink', readlinkSync(path), place];
  return found?.isDirectory() || found?.isFile() ? ['--ro-bind', path, place] : [];
};

const namesIn = (folder: string): readonly string[] => {
  const names = readdirSync(folder);
  if (names.length > MAX_AT_TOP)
    throw new ImageRefused(`it has more than ${MAX_AT_TOP} names at the top, or in /home`);
  if (names.some((name) => name.includes('\ufffd')))
    throw new ImageRefused('it has a name at the top, or in /home, that is not UTF-8');
  return names;
};

const isFolder = (path: string): boolean => lstatOf(path)?.isDirectory() ?? false;
const lstatOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });
