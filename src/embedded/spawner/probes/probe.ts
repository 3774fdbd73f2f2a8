import { spawn, type ChildProcess } from 'node:child_process';
import { startOrder } from '../orders.ts';
import {
  bwrapOptions,
  environmentOf,
  HOME,
  writableMounts,
  type Rootfs,
} from '../sandbox/rootfs.ts';
import { withPipes } from '../../../lib/processes.ts';

const PATIENCE_MS = 10_000;
const COMPLAINT_LIMIT = 2_048;
const MEMORY_BYTES = 16 << 20;

interface ProbeTerms {
  readonly bwrapPath: string;
  readonly uid: number | undefined;
  readonly bare: boolean;
}

/** Finds out which sandboxes this machine can make. Throws the reason if none. */
export const probed = async (rootfs: Rootfs, terms: ProbeTerms): Promise<Rootfs> => {
  const { writable, ...plain } = rootfs;
  if (
    writable !== undefined &&
    (await probe({ ...terms, rootfs }).then(
      () => true,
      () => false,
    ))
  )
    return rootfs;
  await probe({ ...terms, rootfs: plain });
  return plain;
};

const CONTAINER = {
  name: 'probe',
  image: 'host',
  argv: ['true'],
  env: {},
  workingDir: HOME,
  cpuCores: 1,
  memoryBytes: MEMORY_BYTES,
  ports: {},
};

const DEFINITION = {
  containers: [CONTAINER],
  network: 'none' as const,
  startupTimeoutMs: 0,
  idleTimeoutMs: 0,
  maxLifetimeMs: 0,
  cpu: '',
  memory: '',
};

const probe = async (terms: ProbeTerms & { readonly rootfs: Rootfs }): Promise<void> => {
  const child = withPipes(
    spawn(terms.rootfs.launcher, ['start'], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: {},
      cwd: '/',
    }),
  );
  const order = child.stdio[3];
  if (order && 'end' in order) {
    order
      .on('error', () => {})
      .end(
        startOrder({
          bwrap: terms.bwrapPath,
          uid: terms.uid,
          cgroups: [],
          rlimits: [],
          options: bwrapOptions({
            definition: DEFINITION,
            container: CONTAINER,
            rootfs: terms.rootfs,
          }),
          tmpfs: writableMounts({ container: CONTAINER, rootfs: terms.rootfs }, terms.uid),
          argv: CONTAINER.argv,
          bare: terms.bare ? { cwd: '/', env: environmentOf() } : undefined,
        }),
      );
  }
  for (const pipe of child.stdio.slice(4))
    if (pipe && 'resume' in pipe) pipe.on('error', () => {}).resume();
  let complaint = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    if (complaint.length < COMPLAINT_LIMIT) complaint += String(bytes);
  });
  const outcome = await endOf(child);
  if (outcome === 0) return;
  const ended = `${terms.bare ? 'the launcher' : 'bubblewrap'} ended with ${outcome}`;
  throw new Error(`no sandbox can be started on this machine: ${complaint.trim() || ended}`);
};

const endOf = (child: ChildProcess): Promise<number | string> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      resolve('it takes too long');
    }, PATIENCE_MS);
    child.once('error', (error) => {
      clearTimeout(timer);
      resolve(error.message);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve(code ?? String(signal));
    });
  });
