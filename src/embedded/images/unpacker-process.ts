import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { PreparedImage, UnpackerMessage, UnpackOrder } from './unpacker/orders.ts';
import { atUsualPriority, withPipes } from '../../lib/processes.ts';

export interface UnpackerOptions {
  readonly bwrapPath: string;
  /** Program and arguments that run src/embedded/images/unpacker/main. Paths absolute. */
  readonly command: readonly string[];
}

export type UnpackProgress = Extract<UnpackerMessage, { type: 'progress' }>;

/** The image can't be used; `message` names no path of the host, `detail` may. */
export class UnpackFailed extends Error {
  override readonly name = 'UnpackFailed';
  readonly detail: string;

  constructor(reason: string, detail: string) {
    super(reason);
    this.detail = detail;
  }
}

/** Without a word for so long it counts as stuck: making an image durable says none. */
const SILENCE_MS = 300_000;
const LONGEST_MS = 3_600_000;
const COMPLAINT_LIMIT = 4_096;
const MAX_LINE = 32 << 20;

export interface Unpacking {
  /** Rejects with UnpackFailed. */
  readonly prepared: Promise<{ readonly image: PreparedImage; readonly unpacked: boolean }>;
  /** Nothing of the process runs any more. It comes later where the image is made durable. */
  readonly ended: Promise<void>;
}

/**
 * Runs the unpacker for one image, in a sandbox in which the folder of unpacked images is all that
 * can be written. It ends with this process, and once `signal` is aborted. Throws where no process
 * can be started.
 */
export const runUnpacker = (
  options: UnpackerOptions,
  order: UnpackOrder,
  on: { progress(progress: UnpackProgress): void; signal: AbortSignal },
): Unpacking => {
  const child = atUsualPriority(
    withPipes(
      spawn(options.bwrapPath, [...confinement(order.folder), '--', ...options.command], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: {},
        cwd: '/',
      }),
    ),
  );
  child.stdin.on('error', () => {}).end(JSON.stringify(order));
  return {
    prepared: wordsOf(child, on),
    ended: new Promise((resolve) => child.once('close', () => resolve())),
  };
};

const wordsOf = (
  child: ChildProcessWithoutNullStreams,
  on: { progress(progress: UnpackProgress): void; signal: AbortSignal },
): Unpacking['prepared'] =>
  new Promise((resolve, reject) => {
    let complaint = '';
    let heard = 0;
    let last: UnpackerMessage | undefined;
    const give = (reason: string): void => {
      complaint ||= reason;
      child.kill('SIGKILL');
    };
    const silence = setTimeout(() => give('it says nothing any more'), SILENCE_MS);
    const longest = setTimeout(() => give('it takes too long'), LONGEST_MS);
    const abort = (): void => give('the daemon stops');
    on.signal.addEventListener('abort', abort, { once: true });
    child.stderr.on('data', (bytes: Buffer) => {
      if (complaint.length < COMPLAINT_LIMIT) complaint += String(bytes);
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      heard += line.length;
      if (heard > MAX_LINE) return give('it says too much');
      silence.refresh();
      last = read(line);
      if (last?.type === 'progress') on.progress(last);
      // It goes on, to make the image durable.
      if (last?.type === 'ready') resolve(last);
    });
    child.once('error', (error) => {
      complaint ||= error.message;
    });
    child.once('close', (code) => {
      clearTimeout(silence);
      clearTimeout(longest);
      on.signal.removeEventListener('abort', abort);
      if (last?.type === 'failed') reject(new UnpackFailed(last.reason, last.detail));
      else
        reject(
          new UnpackFailed(
            'it could not be unpacked',
            `the unpacker ended with ${code ?? 'a signal'}: ${complaint.trim()}`,
          ),
        );
    });
    if (on.signal.aborted) abort();
  });

const read = (line: string): UnpackerMessage | undefined => {
  try {
    return JSON.parse(line) as UnpackerMessage;
  } catch {
    return undefined;
  }
};

/** The machine read-only but for one folder; no network, no capability, killed with its parent. */
const confinement = (folder: string): readonly string[] => [
  '--unshare-all',
  '--die-with-parent',
  '--new-session',
  '--cap-drop',
  'ALL',
  '--ro-bind',
  '/',
  '/',
  '--dev',
  '/dev',
  '--proc',
  '/proc',
  '--bind',
  folder,
  folder,
  '--chdir',
  '/',
  '--clearenv',
  '--setenv',
  'PATH',
  '/usr/local/bin:/usr/bin:/bin',
];
