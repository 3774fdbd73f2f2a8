import { spawnSync } from 'node:child_process';

/** Runs a program (an ES module) that may have so many descriptors open; returns what it printed. */
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
    { encoding: 'utf8', timeout: 55_000 },
  );
  return stdout.trim() || stderr;
};
