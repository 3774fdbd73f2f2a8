import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { PreparedImage, UnpackerMessage, UnpackOrder } from './unpacker/orders.ts';
import { atUsualPriority, withPipes } from '../../lib/processes.ts';

export interface UnpackerOptions {
  readonly bwrapPath: string;
  /** Runs src/embedded/images/unpacker/main. Paths are absolute. */
  readonly command: readonly string[];
}

export type UnpackProgress = Extract<UnpackerMessage, { type: 'progress' }>;

/** `message` names no path of the host; `detail` may. */
export class UnpackFailed extends Error {
  override readonly name = 'UnpackFailed';
  readonly detail: string;

  constructor(reason: string, detail: string) {
    super(reason);
    this.detail = detail;
  }
}

/** It is silent while it makes an image durable. */
const SILENCE_MS = 300_000;
const LONGEST_MS = 3_600_000;
const COMPLAINT_LIMIT = 4_096;
const MAX_LINE = 32 << 20;

export interface Unpacking {
  /** Rejects with UnpackFailed. */
  readonly prepared: Promise<{ readonly image: PreparedImage; readonly unpacked: boolean }>;
  /** May be later than `prepared`: it still makes the image durable. */
  readonly ended: Promise<void>;
}

/**
 * Its sandbox can write only to the folder of unpacked images. It ends with this process, and once
 * `signal` is aborted. Throws if no process can start.
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
    const silence = setTimeout(() => give('it stopped answering'), SILENCE_MS);
    const longest = setTimeout(() => give('it takes too long'), LONGEST_MS);
    const abort = (): void => give('the daemon stops');
    on.signal.addEventListener('abort', abort, { once: true });
    child.stderr.on('data', (bytes: Buffer) => {
      if (complaint.length < COMPLAINT_LIMIT) complaint += String(bytes);
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      heard += line.length;
      if (heard > MAX_LINE) return give('its output is too long');
      silence.refresh();
      last = read(line);
      if (last?.type === 'progress') on.progress(last);
      // It continues, to make the image durable.
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

/** Read-only except one folder; no network, no capabilities; killed with its parent. */
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
