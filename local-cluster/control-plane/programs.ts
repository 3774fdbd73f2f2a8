import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('../../script/control-plane', import.meta.url));
const PROGRAMS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kwok',
  'helm',
] as const;

/**
 * From TEST_CONTROL_PLANE of script/test, else from script/control-plane, which fails if they are
 * not built.
 */
export const findPrograms = (
  names: readonly ((typeof PROGRAMS)[number] | 'kubelet')[] = PROGRAMS,
): ReadonlyMap<string, string> => {
  const folders = (
    process.env['TEST_CONTROL_PLANE'] ??
    execFileSync(SCRIPT, ['--find', ...names], { encoding: 'utf8' }).trim()
  ).split(delimiter);
  return new Map(
    names.map((name) => {
      const folder = folders.find((candidate) => existsSync(join(candidate, name)));
      if (folder === undefined)
        throw new Error(
          `${name} is in none of ${folders.join(', ')}; script/control-plane builds it`,
        );
      return [name, join(folder, name)];
    }),
  );
};
