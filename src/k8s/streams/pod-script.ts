import { readFileSync } from 'node:fs';

/** Ends the text of a script in what is sent to `read.sh`. */
const END = '#end';

const FOLDER = new URL('scripts/', import.meta.url);

interface ScriptCommand {
  readonly argv: readonly [string, string, string, string];
  readonly stdin: true;
  readonly tty: false;
}

let command: ScriptCommand | undefined;

/** Returns the command that runs a script that comes by its input. */
export const scriptCommand = (): ScriptCommand =>
  (command ??= {
    argv: ['/bin/sh', '-c', scriptText(FOLDER, 'read'), 'sh'],
    stdin: true,
    tty: false,
  });

/**
 * Reads the files of a script, one after the other. Lines that say nothing to the shell are left
 * out: what is sent is read byte by byte, or part of an address.
 */
export const scriptText = (folder: URL, ...names: readonly string[]): string =>
  names
    .flatMap((name) => readFileSync(new URL(`${name}.sh`, folder), 'utf8').split('\n'))
    .map((line) => line.trimStart())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .join('\n');

/** A script as it is sent, before what it reads. */
export type PodScript = Buffer;

let untilEnd: PodScript | undefined;

/** Returns what goes before a script that is to wait for the end of its input. */
export const awaitEnd = (): PodScript =>
  (untilEnd ??= Buffer.from(`${scriptText(FOLDER, 'await-end')}\n`));

/** Reads a script as `scriptText` does, for `scriptCommand`. */
export const readScript = (folder: URL, ...names: readonly string[]): PodScript =>
  Buffer.from(`${scriptText(folder, ...names)}\n${END}\n`);

/** Lines of input for a script; throws where one would be two, or the end of all. */
export const scriptLines = (...lines: readonly (string | number)[]): Buffer => {
  const texts = lines.map(String);
  if (texts.some((line) => /[\n\0]/.test(line))) throw new Error('a line of input holds another');
  return Buffer.from(texts.map((line) => `${line}\n`).join(''));
};
