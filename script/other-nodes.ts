import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const OTHER_NODES: readonly number[] = [20, 22, 24].filter(
  (major) => major !== Number(process.versions.node.split('.')[0]),
);

/**
 * Tests of code on Node's own modules (sockets, streams, HTTP, TLS, files, processes, SQLite's
 * binding), and of a whole daemon; not what the language decides, or what takes minutes. Beginnings
 * of paths below test/.
 */
export const ON_OTHER_NODES: readonly string[] = [
  'audit/',
  'cli/connection.',
  'cli/cp.',
  'cli/local-files.',
  'cli/stop.',
  'client/',
  'e2b/by-domain.',
  'e2b/control.',
  'e2b/ports.',
  'e2b/requests.',
  'e2b/services/file-transfer.',
  'e2b/services/processes.',
  'embedded/spawner',
  'embedded/store/',
  'http/gateway.',
  'http/gateway-hostile.',
  'http/http-server.',
  'http/overload.',
  'http/raw-requests.',
  'http/request-target.',
  'http/requests.',
  'http/terminal-flow.',
  'http/terminal-liveness.',
  'http/terminal-session.',
  'http/terminal-upgrade.',
  'http/tls',
  'http/unread-answers.',
  'k8s/api-client.',
  'k8s/channel-socket.',
  'k8s/pod-streams.',
  'lib/',
  'process/',
  'redis/channels.',
  'redis/coordination.',
  'tracing/',
  'fleet/',
  'webhooks/',
];

const TESTS = fileURLToPath(new URL('../test/', import.meta.url));

export const onOtherNodes = (files: readonly string[]): readonly string[] =>
  files.filter((file) =>
    ON_OTHER_NODES.some((beginning) => file.startsWith(join(TESTS, beginning))),
  );

/** From npm; kept in the user's cache. `cause`: why it is not available. */
export const otherNode = (
  major: number,
): { readonly program: string } | { readonly cause: string } => {
  const folder = join(
    process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
    'sandpool/node',
    String(major),
  );
  const name = `node-linux-${process.arch}`; // only the program
  const program = join(folder, 'node_modules', name, 'bin/node');
  if (!existsSync(program)) {
    console.log(`\nfetching Node ${major} into ${folder}`);
    mkdirSync(folder, { recursive: true });
    const args = [
      'install',
      '--prefix',
      folder,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-save',
      `${name}@${major}`,
    ];
    const { status, stderr } = spawnSync('npm', args, { encoding: 'utf8', timeout: 300_000 });
    if (status !== 0) return { cause: `npm can't fetch it: ${problemIn(stderr ?? '')}` };
  }
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return status === 0 && stdout.startsWith(`v${major}.`)
    ? { program }
    : { cause: `${program} does not run` };
};

/** Warnings come first. */
const problemIn = (said: string): string =>
  (
    said
      .match(/^npm error .*$/gm)
      ?.slice(0, 3)
      .join('; ') ??
    said.trim().split('\n')[0] ??
    ''
  ).slice(0, 400);
