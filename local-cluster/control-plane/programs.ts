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
 * Where each program of a control plane is, by name. script/test tells in TEST_CONTROL_PLANE;
 * without it script/control-plane is asked, which fails, saying so, where they have not been built
 * yet.
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
