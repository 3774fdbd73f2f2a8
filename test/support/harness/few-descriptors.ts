import { spawnSync } from 'node:child_process';
import { NEVER_COMES_MS } from './eventually.ts';

/**
 * Runs a program (an ES module) that may have so many descriptors open; returns what it printed.
 * It is ended if what it waits for never comes.
 */
export const printedWithFewDescriptors = (most: number, program: string): string => {
  const { stdout, stderr } = spawnSync(
    '/bin/bash',
    [
      '-c',
      `ulimit -n ${most}; exec "$0" "$@"`,
      process.execPath,
      '--import',
      'tsx',
      '--input-type=module',
      '-e',
      program,
    ],
    { encoding: 'utf8', timeout: NEVER_COMES_MS },
  );
  return stdout.trim() || stderr;
};
