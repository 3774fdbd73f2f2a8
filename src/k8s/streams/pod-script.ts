import { readFileSync } from 'node:fs';

/** Ends the text of a script in what is sent to `READ_SCRIPT`. */
const END = '#end';

/**
 * Prints its process id, and runs the script that its input begins with. What it runs comes by its
 * input since the address of a command is in audit logs, and is cut by some proxies.
 */
const READ_SCRIPT = `echo "$$"
sandpool_script=
while IFS= read -r sandpool_line && [ "$sandpool_line" != '${END}' ]; do
  sandpool_script=$sandpool_script$sandpool_line'
'
done
unset -v sandpool_line
eval "$sandpool_script"`;

/** Runs a script that comes by its input. */
export const SCRIPT_COMMAND = {
  argv: ['/bin/sh', '-c', READ_SCRIPT, 'sh'],
  stdin: true,
  tty: false,
} as const;

/** A script as it is sent, before what it reads. */
export type PodScript = Buffer;

/**
 * Reads the files of a script, one after the other. Lines that say nothing to the shell are left
 * out: what is sent is read byte by byte.
 */
export const readScript = (folder: URL, ...names: readonly string[]): PodScript => {
  const lines = names.flatMap((name) =>
    readFileSync(new URL(`${name}.sh`, folder), 'utf8').split('\n'),
  );
  const told = lines
    .map((line) => line.trimStart())
    .filter((line) => line !== '' && !line.startsWith('#'));
  return Buffer.from([...told, END, ''].join('\n'));
};

/** Lines of input for a script; throws where one would be two, or the end of all. */
export const scriptLines = (...lines: readonly (string | number)[]): Buffer => {
  const texts = lines.map(String);
  if (texts.some((line) => /[\n\0]/.test(line))) throw new Error('a line of input holds another');
  return Buffer.from(texts.map((line) => `${line}\n`).join(''));
};
