import { spawnSync } from 'node:child_process';
import { NEVER_COMES_MS } from './eventually.ts';

/**
 * Runs an ES module with a limit on open descriptors, and returns its output. Ends it if it waits
 * in vain.
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
