import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { readScript, type PodScript } from '../streams/pod-script.ts';

/** A file or folder in a container; `path` is bytes. */
export interface PodPlace {
  readonly target: PodTarget;
  readonly path: Buffer;
}

const FOLDER = new URL('scripts/', import.meta.url);
const NAMES = [
  'stat',
  'read',
  'write',
  'change',
  'list',
  'links',
  'watch',
  'pack',
  'unpack',
] as const;

/** Scripts for files in containers; each says what it reads and prints. */
export type FileScripts = Readonly<Record<(typeof NAMES)[number], PodScript>>;

let scripts: FileScripts | undefined;

/** Returns the scripts. The files are read once for a process. */
export const fileScripts = (): FileScripts =>
  (scripts ??= Object.fromEntries(
    NAMES.map((name) => [name, readScript(FOLDER, 'common', name)]),
  ) as FileScripts);

const NEWLINE = 10;

/** A text of any bytes but NUL, as `read_text` reads it. */
export const textInput = (text: Buffer): Buffer => {
  if (text.includes(0)) throw new Error('a path holds a NUL');
  const ends = text.reduce((count, byte) => count + (byte === NEWLINE ? 1 : 0), 0);
  return Buffer.concat([Buffer.from(`${ends}\n`), text, Buffer.from('\n')]);
};
