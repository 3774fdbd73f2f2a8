import type { ProcessFact, ProcessSignal } from '../../../model/process.ts';
import { KILL_ALL, LAUNCHER_SIGNALS } from '../launcher-signals.ts';
import { afterReading } from '../after-reading.ts';
import { watchMemory } from '../sandbox/cgroup-folders.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import { SurplusTurns } from '../surplus-turns.ts';
import { INPUT_BYTES } from './bounds.ts';
import { beginCommand, type Command, type CommandDeps } from './command.ts';
import { OutputRing, type OutputStream, type RingMemory } from './output-ring.ts';
import type { OutputReader } from './output-reader.ts';
import { CallRefused, type ProcessStart } from './process-messages.ts';
import { signalOf } from '../../../lib/signal-names.ts';

/** A start that took so long stands still, such as in a sandbox that is frozen. */
const START_DEADLINE_MS = 20_000;
/** From the request to end a process to the harder one, to its launcher. */
const STUBBORN_MS = 2_000;
/** A process whose pacing reader is so far behind waits for it. */
const PACE_BYTES = 256 << 10;
/** Writes of input that wait until the process reads. */
const MOST_WRITES = 64;
/** Counts for a write that is shorter: so that there are as many at most before the process. */
const LEAST_WRITE = INPUT_BYTES / MOST_WRITES;
const TIMED_OUT = 124;
const COULD_NOT_JOIN = 125;
/** The longest time that a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** The turns in which all processes are read for whom nobody waits. */
const SURPLUS = new SurplusTurns();

export interface ProcessDeps extends CommandDeps {
  readonly now: () => number;
  readonly memory: RingMemory;
  /** Are taken of the memory for what is told of its command. */
  readonly commandBytes: number;
  /** Once: it has ended. */
  readonly ended: () => void;
}

interface Write {
  readonly bytes: Buffer;
  readonly settle: (error?: CallRefused) => void;
}

/** One process of a sandbox, from its start until it is forgotten. */
export class SandboxProcess {
  /** Without its variables, which are spent. */
  readonly order: Omit<ProcessStart, 'env'>;
  readonly commandBytes: number;
  readonly ring: OutputRing;
  /** Settles once the program runs or never will; rejects with CallRefused. */
  readonly started: Promise<void>;
  /** Settles once it has ended. */
  readonly over: Promise<void>;
  readonly #deps: ProcessDeps;
  readonly #command: Command;
  readonly #readers = new Set<OutputReader>();
  readonly #writes: Write[] = [];
  readonly #startedAt: number;
  readonly #deadline: NodeJS.Timeout;
  #pid = 0;
  #inHand = 0;
  #isInputOpen: boolean;
  #hasEndedInput = false;
  #isForgotten = false;
  #surplus = 0;
  #waitsForTurn = false;
  #timedOut = false;
  #callOffTimeout: (() => void) | undefined;
  #stubborn: NodeJS.Timeout | undefined;
  #refusal: CallRefused | undefined;
  #end: { readonly exitCode: number; readonly at: number } | undefined;
  readonly #hasMemoryRunOut: () => boolean;
  #outOfMemory = false;
  #settleStart: (error?: CallRefused) => void = () => {};
  #markOver: () => void = () => {};

  /** Throws where it can't be ordered or started. */
  constructor(place: JoinPlace, order: ProcessStart, deps: ProcessDeps) {
    const { env: _spent, ...kept } = order;
    this.order = kept;
    this.commandBytes = deps.commandBytes;
    this.#deps = deps;
    this.ring = new OutputRing(deps.memory);
    this.#isInputOpen = order.stdin || order.tty !== undefined;
    this.#startedAt = deps.now();
    this.#hasMemoryRunOut = watchMemory(place.cgroups);
    this.started = new Promise((resolve, reject) => {
      this.#settleStart = (error) => (error ? reject(error) : resolve());
    });
    this.started.catch(() => {});
    this.over = new Promise((resolve) => {
      this.#markOver = resolve;
    });
    this.#command = beginCommand(deps, place, {
      start: order,
      events: {
        output: (stream, bytes) => this.#output(stream, bytes),
        started: (told) => this.#started(told),
        exited: (exitCode) => this.#exited(exitCode),
      },
    });
    this.#deadline = setTimeout(() => this.#startStandsStill(), START_DEADLINE_MS);
    if (order.timeoutMs !== undefined) this.#arm(order.timeoutMs);
  }

  get isLive(): boolean {
    return this.#end === undefined;
  }

  /** When it ended; undefined while it is live. */
  get endedAt(): number | undefined {
    return this.#end?.at;
  }

  get fact(): ProcessFact {
    const { processId, argv, tag, tty, stdin } = this.order;
    const end = this.#end;
    const signal = end && signalOf(end.exitCode);
    return {
      processId,
      pid: this.#pid,
      argv,
      status: end ? 'Exited' : 'Running',
      exitCode: end?.exitCode,
      endedAt: end?.at,
      signal: signal === undefined || this.#timedOut ? undefined : signal,
      outOfMemory: this.#outOfMemory || undefined,
      startedAt: this.#startedAt,
      tag,
      tty: tty !== undefined,
      stdin: stdin || tty !== undefined,
    };
  }

  join(reader: OutputReader): void {
    this.#readers.add(reader);
    reader.pump();
  }

  leave(reader: OutputReader): void {
    this.#readers.delete(reader);
    this.look();
  }

  /** Ends all readings for want of the process. */
  forget(): void {
    for (const reader of [...this.#readers]) reader.lost();
    this.#readers.clear();
    this.#isForgotten = true;
    this.ring.clear();
    this.#deps.memory.release(this.commandBytes);
  }

  /** Resolves once the process has the input, or will have it next. Rejects with CallRefused. */
  write(bytes: Buffer, signal: AbortSignal): Promise<void> {
    this.#requireInput();
    this.#requirePlace();
    return new Promise((resolve, reject) => {
      const write: Write = {
        bytes,
        settle: (error) => (error ? reject(error) : resolve()),
      };
      signal.addEventListener('abort', () => {
        const at = this.#writes.indexOf(write);
        if (at < 0) return;
        this.#writes.splice(at, 1);
        write.settle(new CallRefused({ kind: 'not-joinable', message: 'it was taken back' }));
      });
      this.#writes.push(write);
      this.#feed();
    });
  }

  /** Behind all input that waits. May be repeated. */
  closeInput(): void {
    if (this.#hasEndedInput && this.isLive) return;
    this.#requireInput();
    const isTerminal = this.order.tty !== undefined;
    if (isTerminal) this.#requirePlace();
    this.#hasEndedInput = !isTerminal;
    this.#isInputOpen = isTerminal;
    this.#writes.push({ bytes: isTerminal ? END_CHARACTER : END_OF_INPUT, settle: () => {} });
    this.#feed();
  }

  resize(cols: number, rows: number): void {
    if (this.order.tty === undefined)
      throw new CallRefused({
        kind: 'refused',
        field: 'tty',
        message: 'the process has no terminal',
      });
    this.#requireLive();
    this.#command.resize(cols, rows);
  }

  signal(name: ProcessSignal): void {
    this.#requireLive();
    this.#command.signal(LAUNCHER_SIGNALS[name] ?? KILL_ALL);
  }

  /** May be repeated. */
  kill(): void {
    if (this.#end || this.#stubborn) return;
    this.#command.signal(KILL_ALL);
    this.#stubborn = setTimeout(() => this.#command.destroy(), STUBBORN_MS);
    this.#command.resume(); // what it printed before is read to its end
  }

  /** A reader moved or left: the process goes on, or waits. */
  look(): void {
    if (this.#end || this.#waitsForTurn) return;
    if (this.#isFarBehind() && !this.#stubborn) this.#command.pause();
    else this.#command.resume();
  }

  #isFarBehind(): boolean {
    for (const reader of this.#readers)
      if (reader.paces && this.ring.end - reader.position >= PACE_BYTES) return true;
    return false;
  }

  #output(stream: OutputStream, bytes: Buffer): void {
    if (this.#isForgotten) return;
    this.ring.append(stream, bytes);
    let isPaced = false;
    for (const reader of this.#readers) {
      reader.pump();
      isPaced ||= reader.paces;
    }
    if (isPaced) this.look();
    else if (this.#end === undefined) this.#countSurplus();
  }

  /** Has output that nobody waits for read when it is its turn. */
  #countSurplus(): void {
    this.#surplus -= 1;
    if (this.#surplus > 0 || this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    this.#command.pause();
    SURPLUS.wait((chunks) => {
      this.#waitsForTurn = false;
      this.#surplus = chunks;
      this.look();
    }, this.order.tenant);
  }

  #feed(): void {
    while (this.#inHand < INPUT_BYTES) {
      const next = this.#writes.shift();
      if (!next) return;
      if (next.bytes === END_OF_INPUT) {
        this.#command.endInput();
        continue;
      }
      const length = Math.max(next.bytes.length, LEAST_WRITE);
      this.#inHand += length;
      next.settle();
      this.#command.write(next.bytes, () => {
        this.#inHand -= length;
        this.#feed();
      });
    }
  }

  #started(told: string): void {
    clearTimeout(this.#deadline);
    this.#pid = Number(/^pid (\d+)$/m.exec(told)?.[1] ?? 0);
    if (!/^cwd \d+$/m.test(told)) return this.#pid > 0 ? this.#settleStart() : undefined;
    this.#refusal = new CallRefused({
      kind: 'refused',
      field: 'cwd',
      message: 'there is no such folder in the sandbox, or it is not open to its user',
    });
    this.#settleStart(this.#refusal);
  }

  #startStandsStill(): void {
    this.#command.destroy();
    this.#settleStart(
      new CallRefused({
        kind: 'not-joinable',
        message: 'the sandbox does not start anything; it may be paused',
      }),
    );
  }

  #exited(exitCode: number): void {
    clearTimeout(this.#deadline);
    this.#callOffTimeout?.();
    clearTimeout(this.#stubborn);
    this.#end = { exitCode: this.#timedOut ? TIMED_OUT : exitCode, at: this.#deps.now() };
    this.#outOfMemory = !this.#timedOut && signalOf(exitCode) === 'KILL' && this.#hasMemoryRunOut();
    // Without a pid it never was in the sandbox.
    if (this.#pid === 0)
      this.#settleStart(
        new CallRefused({
          kind: exitCode === COULD_NOT_JOIN ? 'instance-gone' : 'not-joinable',
          message: 'the sandbox ended, or could not be joined',
        }),
      );
    else this.#settleStart();
    this.#isInputOpen = false;
    for (const { settle } of this.#writes.splice(0)) settle(inputClosed());
    this.#markOver();
    this.#deps.ended();
    for (const reader of [...this.#readers]) reader.pump();
  }

  #arm(leftMs: number): void {
    const part = Math.min(leftMs, LONGEST_MS);
    this.#callOffTimeout = afterReading(part, () => {
      if (leftMs > part) return this.#arm(leftMs - part);
      if (this.#command.hasEnded) return; // in time; what it printed is read
      this.#timedOut = true;
      this.kill();
    });
  }

  #requireLive(): void {
    if (this.#end) throw new CallRefused({ kind: 'ended', message: 'the process has ended' });
  }

  #requireInput(): void {
    if (!this.#isInputOpen) throw inputClosed();
  }

  #requirePlace(): void {
    if (this.#writes.length >= MOST_WRITES)
      throw new CallRefused({
        kind: 'not-joinable',
        message: 'the process reads no input, and too much waits for it',
      });
  }
}

const END_OF_INPUT = Buffer.alloc(0);
/** Stands for the end, on a terminal. */
const END_CHARACTER = Buffer.of(4);

const inputClosed = (): CallRefused =>
  new CallRefused({ kind: 'input-closed', message: 'the process takes no input, or no more' });
