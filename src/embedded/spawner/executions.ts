import { spawn } from 'node:child_process';
import { FRAME_KINDS, MAX_CHUNK, type FrameKind } from './frames.ts';
import type { JoinPlace } from './instance.ts';
import { joinOrder } from './orders.ts';
import type { ExecOrder } from './protocol.ts';
import { environmentOf } from './rootfs.ts';

/** Background children may hold the pipes open after the command's end: they are waited for this long. */
const DRAIN_MS = 100;
/** From the request to end a command to the harder one. */
const STUBBORN_MS = 2_000;
/** The launcher's exit code when it could not join; the reason is then on stderr. */
export const COULD_NOT_JOIN = 125;
const TIMED_OUT = 124;

export interface ExecutionOutcome {
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
}

export interface ExecutionEvents {
  /** Answers false while the daemon reads too slowly: the command then waits until `resume`. */
  output(kind: FrameKind, bytes: Buffer): boolean;
  /** Once, after the last output. */
  exited(outcome: ExecutionOutcome): void;
  /** Once, instead: the launcher could not be started. */
  failed(reason: string): void;
}

export interface Execution {
  resume(): void;
  /** Kills the command and all of its process group. */
  close(): void;
}

/** Runs a command in a sandbox, through a launcher that joins it. */
export const execute = (launcherPath: string, place: JoinPlace, order: ExecOrder, events: ExecutionEvents): Execution => {
  const startedAt = performance.now();
  const child = spawn(launcherPath, ['join'], {
    stdio: [order.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', 'pipe'], env: {}, cwd: '/',
  });
  const { stdin, stdout, stderr } = child;
  const orderPipe = child.stdio[3];
  let over = false;
  let timedOut = false;
  let stubborn: NodeJS.Timeout | undefined;
  let patience: (() => void) | undefined;
  let paused = false;
  let truncated = false;

  const pause = (): void => {
    paused = true;
    stdout?.pause();
    stderr?.pause();
  };
  const close = (): void => {
    if (over || stubborn) return;
    child.kill('SIGTERM');
    stubborn = setTimeout(() => child.kill('SIGKILL'), STUBBORN_MS);
  };
  const timeout = setTimeout(() => { timedOut = true; close(); }, order.timeoutMs);
  const finish = (settle: () => void): void => {
    if (over) return;
    over = true;
    clearTimeout(timeout);
    clearTimeout(stubborn);
    stdout?.destroy();
    stderr?.destroy();
    settle();
  };

  const follow = (stream: NodeJS.ReadableStream | null, kind: FrameKind): Promise<void> => new Promise((resolve) => {
    let left = order.outputLimit;
    stream?.on('data', (bytes: Buffer) => {
      if (over) return;
      if (bytes.length > left) truncated = true;
      const wanted = bytes.subarray(0, left);
      left -= wanted.length;
      for (let at = 0; at < wanted.length; at += MAX_CHUNK) {
        if (!events.output(kind, wanted.subarray(at, at + MAX_CHUNK))) pause();
      }
    });
    stream?.on('error', () => {});
    stream?.once('close', () => resolve());
  });
  const drained = Promise.all([follow(stdout, FRAME_KINDS.output), follow(stderr, FRAME_KINDS.errors)]);

  child.once('error', (error) => finish(() => events.failed(error.message)));
  child.once('exit', (code, signal) => {
    clearTimeout(timeout);
    const exitCode = timedOut ? TIMED_OUT : code ?? (signal ? 137 : COULD_NOT_JOIN);
    const tell = (): void => finish(() => events.exited({ exitCode, timedOut, truncated, durationMs: Math.round(performance.now() - startedAt) }));
    patience = () => setTimeout(() => { if (!paused) tell(); }, DRAIN_MS);
    patience();
    void drained.then(tell);
  });

  if (orderPipe && 'end' in orderPipe) orderPipe.on('error', () => {}).end(joinOrder({
    init: place.init, cgroups: place.cgroups, cwd: order.cwd ?? place.workingDir,
    env: environmentOf(place.env, order.env ?? {}), argv: order.argv,
  }));
  stdin?.on('error', () => {}).end(order.stdin);
  return {
    resume: () => {
      if (!paused) return;
      paused = false;
      stdout?.resume();
      stderr?.resume();
      patience?.();
    },
    close,
  };
};
