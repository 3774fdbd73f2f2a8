import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import type { TarEntry } from './an-oci-layout.ts';

/** Entries of a layer: programs of this machine with their libraries, enough to run a shell. */
export const programEntries = (
  programs: readonly string[] = [
    'sh',
    'cat',
    'ls',
    'id',
    'env',
    'pwd',
    'true',
    'false',
    'echo',
    'sleep',
    'touch',
    'stat',
    'readlink',
    'find',
    'mkdir',
    'rm',
  ],
): readonly TarEntry[] => {
  const files = new Map<string, string>();
  for (const program of programs) {
    const path = execFileSync('which', [program], { encoding: 'utf8' }).trim();
    files.set(`usr/bin/${program}`, path);
    const needed = execFileSync('ldd', [path], { encoding: 'utf8' });
    for (const [library] of needed.matchAll(/\/[^ \n]+/g))
      files.set(library.replace(/^\/(usr\/)?/, 'usr/'), library);
  }
  return [
    ...['usr', 'usr/bin', 'usr/lib', 'usr/lib64', 'etc', 'tmp'].map((name): TarEntry => ({
      name,
      type: 'directory',
      mode: 0o755,
    })),
    { name: 'bin', type: 'symlink', linkname: 'usr/bin' },
    { name: 'lib', type: 'symlink', linkname: 'usr/lib' },
    { name: 'lib64', type: 'symlink', linkname: 'usr/lib64' },
    ...[...files].map(([name, path]): TarEntry => ({
      name,
      mode: 0o755,
      content: readFileSync(realpathSync(path)),
    })),
  ];
};
