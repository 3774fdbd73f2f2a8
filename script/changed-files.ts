import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * The changed test files, and the suites of changed folders of src/. Compares with the point where
 * this branch left `main`, or on `main` with the last commit.
 */
export const changedFiles = (all: readonly string[]): readonly string[] => {
  const base = git('merge-base', 'HEAD', 'main')[0] ?? 'HEAD';
  const changed = [
    ...git('diff', '--name-only', base),
    ...git('ls-files', '-o', '--exclude-standard'),
  ];
  const touched = new Set(changed.map((file) => file.replace(/^test\//, '')));
  // All files of a suite use a shared one, such as a builder.
  const suites = new Set(
    changed
      .filter((file) => /^(src|test)\//.test(file) && !file.endsWith('.test.ts'))
      .map((file) => file.split('/')[1]),
  );
  return all.filter((file) => touched.has(file) || suites.has(file.split('/')[0]));
};

const git = (...args: readonly string[]): readonly string[] =>
  spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line !== '');
