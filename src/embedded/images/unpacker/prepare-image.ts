import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { readBounded } from './bounded-file.ts';
import { hasCode } from './has-code.ts';
import { ImageRefused } from './image-refused.ts';
import { readImageEtc, viewOfRoot, writeOwnEtc } from './image-root.ts';
import { ImageTree } from './image-tree.ts';
import { imageUserOf, SANDBOX_USER } from './image-user.ts';
import type { ImageConfigDocument } from './oci-documents.ts';
import { readOciImage, thisPlatform, type OciImage } from './oci-layout.ts';
import type { ImageConfig, PreparedImage, UnpackOrder } from './orders.ts';
import { unpackLayers, type UnpackProgress } from './unpack-layers.ts';
import { Writer } from './writer.ts';

const MAX_ENTRIES = 1_000_000;
const FACTS = 'image.json';
const MAX_FACTS_BYTES = 64 << 20;
/** All its files are on the disk. */
const DURABLE = 'durable';

interface Facts extends Pick<PreparedImage, 'user' | 'config'> {
  /**
   * Before it is durable, an image is valid only in this boot: a power cut may have lost any part.
   */
  readonly bootId: string;
}

/**
 * Built in `staging` and then renamed: the image appears as a whole or not at all. `makeDurable`
 * keeps it over a reboot. Throws ImageRefused.
 */
export const prepareImage = async (
  order: UnpackOrder,
  say: (progress: UnpackProgress) => void,
): Promise<{ readonly image: PreparedImage; readonly unpacked: boolean }> => {
  mkdirSync(order.staging, { mode: 0o755 });
  try {
    return order.kind === 'dir'
      ? { image: prepareFolder(order), unpacked: false }
      : await prepareLayout(order, say);
  } finally {
    rmSync(order.staging, { recursive: true, force: true });
  }
};

/** Uses the folder in place. */
const prepareFolder = (order: UnpackOrder): PreparedImage => {
  const key = order.key ?? '';
  const etc = join(order.folder, key, 'etc');
  writeOwnEtc(etc, SANDBOX_USER, {
    passwd: readImageEtc(order.source, 'passwd'),
    group: readImageEtc(order.source, 'group'),
  });
  const { system, taken } = viewOfRoot(order.source, etc);
  return { key, system, taken, user: SANDBOX_USER, config: { env: {}, entrypoint: [], cmd: [] } };
};

const prepareLayout = async (
  order: UnpackOrder,
  say: (progress: UnpackProgress) => void,
): Promise<{ readonly image: PreparedImage; readonly unpacked: boolean }> => {
  const found = await readOciImage(order.source, order, thisPlatform());
  const key = found.digest.replace(':', '-');
  const home = join(order.folder, key);
  const ready = ({ user, config }: Facts): PreparedImage => ({
    key,
    ...viewOfRoot(join(home, 'root'), join(home, 'etc')),
    user,
    config,
  });
  const before = await readFacts(home);
  if (before) return { image: ready(before), unpacked: false };
  const config = configOf(found.config);
  const tree = await unpackInto(order, found, say);
  finishRoot(join(order.staging, 'root'), tree, config.workingDir);
  const [passwd, group] = [
    readImageEtc(join(order.staging, 'root'), 'passwd'),
    readImageEtc(join(order.staging, 'root'), 'group'),
  ];
  const user = imageUserOf(found.config.config?.User ?? '', passwd, group);
  writeOwnEtc(join(order.staging, 'etc'), user, { passwd, group });
  // throws before anything is final
  viewOfRoot(join(order.staging, 'root'), join(order.staging, 'etc'));
  const facts: Facts = { user, config, bootId: bootId() };
  writeFileSync(join(order.staging, FACTS), JSON.stringify(facts), { mode: 0o644 });
  settle(order.staging, home);
  return { image: ready(facts), unpacked: true };
};

/** Removes an image that a power cut may have damaged: no living sandbox uses it. */
const readFacts = async (home: string): Promise<Facts | undefined> => {
  if (!existsSync(home)) return undefined;
  try {
    const facts = JSON.parse(
      String(await readBounded(join(home, FACTS), FACTS, MAX_FACTS_BYTES)),
    ) as Facts;
    if (existsSync(join(home, DURABLE)) || facts.bootId === bootId()) return facts;
  } catch {}
  rmSync(home, { recursive: true, force: true });
  return undefined;
};

/** As slow as the disk. */
export const makeDurable = (folder: string, key: string): void => {
  const home = join(folder, key);
  if (!existsSync(join(home, FACTS)) || existsSync(join(home, DURABLE))) return;
  const { status } = spawnSync('sync', ['--file-system', home], { stdio: 'ignore' });
  if (status === 0) writeFileSync(join(home, DURABLE), '');
};

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

const unpackInto = async (
  order: UnpackOrder,
  { layers }: OciImage,
  say: (progress: UnpackProgress) => void,
): Promise<ImageTree> => {
  const root = join(order.staging, 'root');
  mkdirSync(root, { mode: 0o755 });
  const tree = new ImageTree(MAX_ENTRIES);
  const writer = new Writer(root);
  try {
    await unpackLayers(layers, { tree, writer, limits: order }, say);
    return tree;
  } finally {
    await writer.stop();
  }
};

/** Plain files as mount points, and the working folder. */
const finishRoot = (root: string, tree: ImageTree, workingDir: string | undefined): void => {
  const steps = ['passwd', 'group', 'hosts', 'hostname', 'resolv.conf'].flatMap((name) => {
    const kind = tree.kindOf(['etc']) === 'folder' ? tree.kindOf(['etc', name]) : 'file';
    return kind === 'file' ? [] : [join(root, 'etc', name)];
  });
  for (const path of steps) {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, '', { mode: 0o644 });
  }
  const parts = (workingDir ?? '/').split('/').filter((part) => part !== '');
  const depth = parts.findIndex((_, at) => tree.kindOf(parts.slice(0, at + 1)) !== 'folder');
  // Not below a link or a file; the missing folder then fails the sandbox's start.
  if (depth > 0 && tree.kindOf(parts.slice(0, depth + 1)) === 'absent')
    mkdirSync(join(root, ...parts), { recursive: true, mode: 0o755 });
};

/** Throws ImageRefused. */
const configOf = ({ config }: ImageConfigDocument): ImageConfig => {
  const workingDir = config?.WorkingDir || undefined;
  if (
    workingDir !== undefined &&
    (!workingDir.startsWith('/') || workingDir.split('/').includes('..'))
  )
    throw new ImageRefused('its WorkingDir is not an absolute path without ..');
  return {
    env: Object.fromEntries(
      (config?.Env ?? []).map((pair) => {
        const at = pair.indexOf('=');
        if (at < 1) throw new ImageRefused('its Env has an entry that is not NAME=VALUE');
        return [pair.slice(0, at), pair.slice(at + 1)];
      }),
    ),
    entrypoint: config?.Entrypoint ?? [],
    cmd: config?.Cmd ?? [],
    workingDir: workingDir === undefined ? undefined : posix.normalize(workingDir),
  };
};

const settle = (staging: string, home: string): void => {
  try {
    renameSync(staging, home);
  } catch (error) {
    // Another process was faster, with the same result.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
};
