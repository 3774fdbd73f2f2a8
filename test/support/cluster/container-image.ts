import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DockerfileParser } from 'dockerfile-ast';

export const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url));
export const DOCKERFILE = readFileSync(join(REPOSITORY, 'deploy/Dockerfile'), 'utf8');
/** Their results are this repository's and this machine's own. */
const INSTALL = /^(npm ci --ignore-scripts|apt-get update)\b/;
const BUILD_MS = 300_000;

export interface Step {
  readonly keyword: string;
  readonly text: string;
}

/** Instructions of each stage, after those before the first FROM. */
export const dockerfileStages = (text = DOCKERFILE): readonly (readonly Step[])[] => {
  const stages: Step[][] = [[]];
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const { start, end } = instruction.getRange();
    const whole = text
      .split('\n')
      .slice(start.line, end.line + 1)
      .join(' ')
      .replaceAll('\\ ', ' ');
    const step = {
      keyword: instruction.getKeyword(),
      text: whole.slice(whole.indexOf(' ') + 1).trim(),
    };
    if (step.keyword === 'FROM') stages.push([step]);
    else stages.at(-1)?.push(step);
  }
  return stages;
};

/** As `docker build` makes it, with only the files that the Dockerfile copies. */
export interface ContainerImage {
  /** The image's folder at `place`. */
  readonly tree: string;
  readonly place: string;
  readonly uid: number;
  readonly gid: number;
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** ENTRYPOINT, then CMD. */
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  remove(): void;
}

/**
 * Runs the Dockerfile's stages, each command in a sandbox with the stage's files and this machine's
 * programs. A given `dist` saves half a minute of compiling.
 */
export const buildImage = async ({
  dist,
}: { readonly dist?: string } = {}): Promise<ContainerImage> => {
  const [, build = [], final = []] = dockerfileStages();
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  chmodSync(folder, 0o755);
  const [source, output] = [join(folder, 'source'), join(folder, 'image')];
  for (const made of [source, output]) mkdirSync(made);
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const [from = '', place = ''] =
      /^--from=build (\S+) (\S+)$/.exec(only(final, 'COPY'))?.slice(1) ?? [];
    const workingDir = only(build, 'WORKDIR');
    for (const { keyword, text } of build) {
      if (keyword === 'COPY') copy(text, source);
      else if (keyword === 'RUN' && !INSTALL.test(text)) {
        // It must be newer than the sources.
        if (dist !== undefined) cpSync(dist, join(source, 'dist'), { recursive: true });
        const binds = [
          ['--bind', source, workingDir],
          ['--ro-bind', join(REPOSITORY, 'node_modules'), join(workingDir, 'node_modules')],
          ['--bind', output, from],
          // Debian names the compiler here.
          ['--ro-bind-try', '/etc/alternatives', '/etc/alternatives'],
        ].flat();
        const argv = containedBy({ binds, workingDir, env: { HOME: '/tmp' } });
        await promisify(execFile)(argv[0] ?? '', [...argv.slice(1), 'sh', '-c', text], {
          timeout: BUILD_MS,
        });
      }
    }
    const [uid = 0, gid = 0] = only(final, 'USER').split(':').map(Number);
    const env = Object.fromEntries(
      final
        .filter(({ keyword }) => keyword === 'ENV')
        .flatMap(({ text }) => text.split(' '))
        .map((pair) => pair.replace('$PATH', process.env['PATH'] ?? '').split('=', 2)),
    );
    const listOf = (keyword: string): readonly string[] =>
      JSON.parse(only(final, keyword)) as readonly string[];
    return {
      tree: output,
      place,
      uid,
      gid,
      workingDir: only(final, 'WORKDIR'),
      env,
      entrypoint: listOf('ENTRYPOINT'),
      command: listOf('CMD'),
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
};

export const only = (steps: readonly Step[], keyword: string): string => {
  const [found, ...more] = steps.filter((step) => step.keyword === keyword);
  if (found === undefined || more.length > 0)
    throw new Error(`there is not exactly one ${keyword}`);
  return found.text;
};

const copy = (text: string, source: string): void => {
  const parts = text.split(/\s+/);
  const target = parts.pop() ?? '';
  for (const part of parts)
    cpSync(
      join(REPOSITORY, part),
      target.endsWith('/') ? join(source, target, part) : join(source, target),
      { recursive: true },
    );
};

export interface Contained {
  /** bwrap's arguments for mounts. */
  readonly binds: readonly string[];
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Needs root for another user. */
  readonly user?: {
    readonly uid: number;
    readonly gid: number;
    readonly groups?: readonly number[];
  };
}

/**
 * Begins a command line that runs like a container: a read-only root, its own /tmp, this machine's
 * /usr and network, and only the given environment.
 */
export const containedBy = ({ binds, workingDir, env, user }: Contained): readonly string[] => {
  const nodeHome = dirname(dirname(process.execPath));
  const become =
    user && process.getuid?.() === 0
      ? [
          'setpriv',
          '--reuid',
          String(user.uid),
          '--regid',
          String(user.gid),
          ...(user.groups?.length ? ['--groups', user.groups.join(',')] : ['--clear-groups']),
        ]
      : [];
  return [
    ...become,
    'bwrap',
    '--die-with-parent',
    '--unshare-pid',
    '--new-session',
    '--clearenv',
    '--tmpfs',
    '/',
    '--ro-bind',
    '/usr',
    '/usr',
    ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...(nodeHome.startsWith('/usr') ? [] : ['--ro-bind', nodeHome, nodeHome]),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    ...binds,
    '--remount-ro',
    '/',
    '--chdir',
    workingDir,
    ...Object.entries({ PATH: `${join(nodeHome, 'bin')}:/usr/bin:/bin`, ...env }).flatMap(
      ([name, value]) => ['--setenv', name, value],
    ),
    '--',
  ];
};
