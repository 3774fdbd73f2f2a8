import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { afterReading } from './after-reading.ts';
import { FRAME_KINDS, MAX_CHUNK, type FrameKind } from './frames.ts';
import type { JoinPlace } from './sandbox/join-place.ts';
import { watchMemory } from './sandbox/cgroup-folders.ts';
import type { LauncherPool } from './launcher-pool.ts';
import { joinOrder } from './orders.ts';
import type { ExecOrder } from './protocol.ts';
import { environmentOf } from './sandbox/rootfs.ts';
import { signalOf } from '../../lib/signal-names.ts';
import { publicMessage } from './public-message.ts';
import { SurplusTurns } from './surplus-turns.ts';

/** Background children may hold the pipes open after the command's end. */
const DRAIN_MS = 100;
const STUBBORN_MS = 2_000;
export const COULD_NOT_JOIN = 125;
const TIMED_OUT = 124;

const SURPLUS = new SurplusTurns();

export interface ExecutionOutcome {
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly outOfMemory?: true;
}

export interface ExecutionEvents {
  /** Returns false to make the command wait until `resume`. */
  output(kind: FrameKind, bytes: Buffer): boolean;
  /** Called once, after the last output. */
  exited(outcome: ExecutionOutcome): void;
  /** Called instead of `exited` if the launcher could not start. */
  failed(reason: string): void;
}

export class Execution {
  readonly #child: ChildProcess;
  readonly #order: ExecOrder;
  readonly #events: ExecutionEvents;
  readonly #startedAt = performance.now();
  readonly #callOffTimeout: () => void;
  readonly #hasMemoryRunOut: () => boolean;
  #stubborn: NodeJS.Timeout | undefined;
  #stopDraining: (() => void) | undefined;
  #exitCode: number | undefined;
  #open = 2;
  #paused = false;
  #over = false;
  #timedOut = false;
  #truncated = false;

  /** Throws if the launcher can't start or take its order. */
  constructor(
    launchers: LauncherPool,
    { place, order }: { readonly place: JoinPlace; readonly order: ExecOrder },
    events: ExecutionEvents,
  ) {
    this.#order = order;
    this.#events = events;
    this.#hasMemoryRunOut = watchMemory(place.cgroups);
    const bytes = joinOrder({
      init: place.init,
      user: place.user,
      bare: place.bare,
      cgroups: place.cgroups,
      cwd: order.cwd ?? place.workingDir,
      env: environmentOf(place.env, order.env ?? {}),
      argv: order.argv,
    });
    const child = launchers.take({ withInput: order.stdin !== undefined });
    this.#child = child;
    this.#callOffTimeout = afterReading(order.timeoutMs, () => {
      this.#timedOut = true;
      this.close();
    });
    this.#follow(child.stdout, FRAME_KINDS.output);
    this.#follow(child.stderr, FRAME_KINDS.errors);
    child.once('error', (error) => this.#finish(() => events.failed(publicMessage(error))));
    child.once('exit', (code, signal) => this.#exited(code ?? (signal ? 137 : COULD_NOT_JOIN)));
    const pipe = child.stdio[3];
    if (pipe && 'end' in pipe) pipe.on('error', () => {}).end(bytes);
    child.stdin?.on('error', () => {}).end(order.stdin);
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#child.stdout?.resume();
    this.#child.stderr?.resume();
    if (this.#exitCode !== undefined) this.#awaitPipes();
  }

  close(): void {
    if (this.#over || this.#stubborn) return;
    this.#child.kill('SIGTERM');
    this.#stubborn = setTimeout(() => this.#child.kill('SIGKILL'), STUBBORN_MS);
  }

  #follow(stream: Readable | null, kind: FrameKind): void {
    let left = this.#order.outputLimit;
    const surplusRead = stream ? this.#surplusOf(stream) : () => undefined;
    stream?.on('data', (bytes: Buffer) => {
      if (this.#over) return;
      if (bytes.length > left) this.#truncated = true;
      const wanted = bytes.subarray(0, left);
      left -= wanted.length;
      for (let at = 0; at < wanted.length; at += MAX_CHUNK) {
        if (!this.#events.output(kind, wanted.subarray(at, at + MAX_CHUNK))) this.#pause();
      }
      if (wanted.length < bytes.length) surplusRead();
    });
    stream?.on('error', () => {});
    stream?.once('close', () => {
      this.#open -= 1;
      this.#tellWhenDone();
    });
  }

  #surplusOf(stream: Readable): () => void {
    let left = 0;
    let isWaiting = false;
    return () => {
      left -= 1;
      if (left > 0) return;
      stream.pause();
      if (isWaiting) return;
      isWaiting = true;
      SURPLUS.wait((chunks) => {
        isWaiting = false;
        left = chunks;
        if (!this.#paused && !this.#over) stream.resume();
      });
    };
  }

  #pause(): void {
    this.#paused = true;
    this.#stopDraining?.();
    this.#child.stdout?.pause();
    this.#child.stderr?.pause();
  }

  #exited(exitCode: number): void {
    this.#callOffTimeout();
    clearTimeout(this.#stubborn);
    this.#exitCode = this.#timedOut ? TIMED_OUT : exitCode;
    if (!this.#paused) this.#awaitPipes();
    this.#tellWhenDone();
  }

  #awaitPipes(): void {
    this.#stopDraining?.();
    this.#stopDraining = afterReading(DRAIN_MS, () => this.#tell());
  }

  #tellWhenDone(): void {
    if (this.#open === 0 && this.#exitCode !== undefined) this.#tell();
  }

  #tell(): void {
    const exitCode = this.#exitCode ?? COULD_NOT_JOIN;
    const durationMs = Math.round(performance.now() - this.#startedAt);
    this.#finish(() =>
      this.#events.exited({
        exitCode,
        timedOut: this.#timedOut,
        truncated: this.#truncated,
        durationMs,
        outOfMemory: signalOf(exitCode) === 'KILL' && this.#hasMemoryRunOut() ? true : undefined,
      }),
    );
  }

  #finish(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#callOffTimeout();
    clearTimeout(this.#stubborn);
    this.#stopDraining?.();
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    settle();
  }
}
