import type { WebSocket } from 'ws';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { OpenTerminal } from '../../actors/sandbox/commands/sandbox-operations.ts';
import type { FrameBudget } from './frame-budget.ts';
import { Resizes, TerminalInput } from './input.ts';
import { Liveness } from './liveness.ts';
import { MAX_SIDE } from './request.ts';
import { PROCESS_SIGNALS } from '../../model/process.ts';

/** In bytes; a longer message closes the connection with 1009. */
export const MAX_MESSAGE_BYTES = 64 * 1024;
/** Waiting bytes at which the terminal pauses; well below the limit of 1 MiB. */
const PAUSE_BYTES = 128 * 1024;
const RESUME_BYTES = 32 * 1024;
const FRAME_BYTES = 32 * 1024;
const TOUCH_EVERY_MS = 1_000;
/** Then a closed connection is cut. */
const CLOSE_GRACE_MS = 3_000;
/** Used after the shell's own end: a slow reader may still read the last output. */
export const SLOW_CLOSE_MS = 60_000;
/** Silence after the shell's exit that counts as drained output. */
const DRAIN_QUIET_MS = 250;
/** A killed shell waits this long for its sandbox's end event. */
const SANDBOX_END_GRACE_MS = 500;
const CONTROL_FRAMES_PER_SECOND = 100;

export interface TerminalSessionOptions {
  readonly ws: WebSocket;
  readonly opened: OpenTerminal;
  /** `sandpool.terminal.v1`: text frames are JSON. */
  readonly framed: boolean;
  readonly clock: Clock;
  readonly budget: FrameBudget;
  readonly log: Log;
  /** For each log line. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Connects a WebSocket with a terminal. Pauses the faster side; drops no byte. */
export class TerminalSession {
  /** Resolves when connection and terminal are closed. */
  readonly closed: Promise<void>;
  readonly #ws: WebSocket;
  readonly #opened: OpenTerminal;
  readonly #framed: boolean;
  readonly #what: 'shell' | 'process';
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #liveness: Liveness;
  readonly #input: TerminalInput;
  readonly #resizes: Resizes;
  readonly #timers = new Map<'drain' | 'end' | 'cut', () => void>();
  #settleClosed: () => void = () => {};
  #closing = false;
  #outputPaused = false;
  #outputEnded = false;
  #outputAt = 0;
  #touchedAt = Number.NEGATIVE_INFINITY;
  #controlWindow = { since: 0, count: 0 };

  constructor(options: TerminalSessionOptions) {
    this.#ws = options.ws;
    this.#opened = options.opened;
    this.#framed = options.framed;
    this.#what = options.opened.closeInput ? 'process' : 'shell';
    this.#clock = options.clock;
    this.#log = options.log;
    this.#fields = options.fields;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    this.#liveness = new Liveness(options.clock, {
      ping: () => this.#ws.ping(),
      dead: () => this.#cut(),
      stalled: () => this.close(4008, 'too slow'),
    });
    this.#input = new TerminalInput({ ...options, liveness: this.#liveness });
    this.#resizes = new Resizes(options.clock, (cols, rows) => {
      this.#control('resize', (terminal) => terminal.resize(cols, rows));
    });
  }

  start(): void {
    const { stream, exit } = this.#opened.terminal;
    this.#log.info({ ...this.#fields }, 'terminal-opened');
    // binaryType is nodebuffer
    this.#ws.on('message', (data, isBinary) => this.#onMessage(data as Buffer, isBinary));
    this.#ws.on('ping', (data) => this.#onPing(data));
    this.#ws.on('pong', (data) => this.#onPong(data));
    this.#ws.on('error', (error) =>
      this.#log.info({ ...this.#fields, error: error.message }, 'terminal-connection-failed'),
    );
    this.#ws.on('close', (code) => this.#onClosed(code));
    stream.on('data', this.#onOutput);
    stream.on('drain', () => this.#input.ptyTakesMore());
    stream.once('end', () => {
      this.#outputEnded = true;
    });
    stream.once('close', () => {
      this.#outputEnded = true;
    });
    stream.on('error', (error) =>
      this.#log.info({ ...this.#fields, error: error.message }, 'terminal-stream-failed'),
    );
    exit.then(
      (code) => this.#onExit(code),
      () => this.#onExit(null),
    );
    this.#opened.ended.then(
      (why) => {
        if (why === 'key-revoked') this.close(4001, 'the key was revoked');
        else this.close(4004, 'the sandbox ended');
      },
      () => this.close(4004, 'the sandbox ended'),
    );
    this.#liveness.start();
  }

  /** Cuts a connection whose peer does not answer the close. May be repeated. */
  close(code: number, reason: string): void {
    if (this.#closing && code !== 1012) return;
    this.#arm('cut', code === 1000 ? SLOW_CLOSE_MS : CLOSE_GRACE_MS, () => this.#ws.terminate());
    if (this.#closing) return;
    this.#closing = true;
    this.#opened.terminal.stream.off('data', this.#onOutput);
    this.#opened.close();
    this.#stopInput();
    this.#ws.resume(); // or the peer's close frame would never be read
    this.#ws.close(code, reason);
  }

  #cut(): void {
    this.#log.info({ ...this.#fields }, 'terminal-peer-dead');
    this.#ws.terminate();
  }

  #onClosed(code: number): void {
    this.#closing = true;
    this.#stopInput();
    for (const callOff of this.#timers.values()) callOff();
    this.#opened.terminal.stream.off('data', this.#onOutput);
    this.#opened.close();
    this.#log.info({ ...this.#fields, code }, 'terminal-closed');
    this.#settleClosed();
  }

  #stopInput(): void {
    this.#liveness.stop();
    this.#input.stop();
    this.#resizes.stop();
  }

  readonly #onOutput = (chunk: Buffer): void => {
    this.#outputAt = this.#clock.now();
    this.#touch();
    for (let from = 0; from < chunk.length; from += FRAME_BYTES) {
      this.#ws.send(chunk.subarray(from, from + FRAME_BYTES), { binary: true }, this.#onSent);
    }
    this.#liveness.sent(chunk.length);
    if (this.#ws.bufferedAmount <= PAUSE_BYTES || this.#outputPaused) return;
    this.#outputPaused = true;
    this.#opened.terminal.stream.pause();
    this.#liveness.congested();
  };

  readonly #onSent = (): void => {
    if (!this.#outputPaused || this.#closing) return;
    this.#liveness.progressed();
    if (this.#ws.bufferedAmount > RESUME_BYTES) return;
    this.#outputPaused = false;
    this.#liveness.flowing();
    this.#opened.terminal.stream.resume();
  };

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#liveness.heard('frame');
    if (this.#closing) return;
    this.#input.count(data.length);
    if (this.#framed && !isBinary) return this.#onControl(data);
    this.#touch();
    const { stream } = this.#opened.terminal;
    if (data.length === 0 || !stream.writable || stream.write(data)) return;
    this.#input.ptyIsFull();
  }

  #onPing(data: Buffer): void {
    this.#liveness.heard('frame');
    if (this.#closing) return;
    this.#input.count(data.length);
    if (!this.#congested()) this.#ws.pong(data);
  }

  #onPong(data: Buffer): void {
    this.#liveness.heard('pong');
    if (!this.#closing) this.#input.count(data.length);
  }

  #onControl(data: Buffer): void {
    if (!this.#withinControlRate()) return this.#complain('too many control frames; slow down');
    const { closeInput } = this.#opened;
    const frame = readControlFrame(data, this.#what);
    if ('problem' in frame) return this.#complain(frame.problem);
    this.#touch();
    if (frame.type === 'eof') closeInput?.();
    else if (frame.type === 'resize') this.#resizes.ask(frame.cols, frame.rows);
    else this.#control('signal', (terminal) => terminal.signal(frame.name));
  }

  #control(type: 'resize' | 'signal', act: (terminal: OpenTerminal['terminal']) => void): void {
    try {
      act(this.#opened.terminal);
    } catch (error) {
      this.#log.info({ ...this.#fields, type, error: String(error) }, 'terminal-control-failed');
      this.#complain(`${type} failed`);
    }
  }

  #withinControlRate(): boolean {
    const now = this.#clock.now();
    if (now - this.#controlWindow.since >= 1_000) this.#controlWindow = { since: now, count: 0 };
    this.#controlWindow.count += 1;
    return this.#controlWindow.count <= CONTROL_FRAMES_PER_SECOND;
  }

  /** Skipped while the reader is behind: complaints must not pile up. */
  #complain(problem: string): void {
    if (!this.#congested()) this.#ws.send(errorFrame(problem));
  }

  #congested(): boolean {
    return this.#ws.bufferedAmount > PAUSE_BYTES;
  }

  #touch(): void {
    const now = this.#clock.now();
    if (now - this.#touchedAt < TOUCH_EVERY_MS) return;
    this.#touchedAt = now;
    this.#opened.touch();
  }

  #onExit(exitCode: number | null): void {
    if (this.#closing) return;
    const byForce = exitCode === null || exitCode === 137 || exitCode === 129;
    if (byForce) this.#arm('end', SANDBOX_END_GRACE_MS, () => this.#finishAfterOutput(exitCode));
    else this.#finishAfterOutput(exitCode);
  }

  /** Sends all of the shell's output, but does not wait for leftover processes. */
  #finishAfterOutput(exitCode: number | null): void {
    if (this.#closing) return;
    const silent = !this.#outputPaused && this.#clock.now() - this.#outputAt >= DRAIN_QUIET_MS;
    if (this.#outputEnded || (silent && this.#timers.has('drain'))) return this.#finish(exitCode);
    if (!this.#timers.has('drain')) {
      const done = (): void => this.#finishAfterOutput(exitCode);
      this.#opened.terminal.stream.once('end', done).once('close', done);
    }
    this.#arm('drain', DRAIN_QUIET_MS, () => this.#finishAfterOutput(exitCode));
  }

  #finish(exitCode: number | null): void {
    if (exitCode === null) {
      const lost = `the link to the ${this.#what === 'shell' ? 'terminal' : 'process'} was lost`;
      if (this.#framed) this.#ws.send(errorFrame(lost));
      return this.close(1011, lost);
    }
    const { outOfMemory = false } = this.#opened.terminal;
    if (this.#framed) this.#ws.send(exitFrame(exitCode, outOfMemory));
    this.close(1000, `the ${this.#what} ended`);
  }

  #arm(name: 'drain' | 'end' | 'cut', afterMs: number, due: () => void): void {
    this.#timers.get(name)?.();
    this.#timers.set(name, this.#clock.at(this.#clock.now() + afterMs, due));
  }
}

type ControlFrame =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'signal'; readonly name: string }
  /** Ends the input; for processes only. */
  | { readonly type: 'eof' };

/** In bytes; longer text frames are refused unparsed. */
const MAX_CONTROL_BYTES = 4_096;
const SIGNALS: readonly string[] = PROCESS_SIGNALS;

/** Explains a fault to the client. Ignores unknown fields. */
const readControlFrame = (
  bytes: Buffer,
  of: 'shell' | 'process' = 'shell',
): ControlFrame | { readonly problem: string } => {
  if (bytes.length > MAX_CONTROL_BYTES)
    return { problem: `a text frame has at most ${MAX_CONTROL_BYTES} bytes of JSON` };
  const fields = parseObject(bytes.toString('utf8'));
  if (!fields)
    return {
      problem: 'a text frame must be a JSON object; input for the terminal goes in binary frames',
    };
  const { type, cols, rows, name } = fields;
  if (type === 'resize') {
    return isSide(cols) && isSide(rows)
      ? { type, cols, rows }
      : { problem: `resize: cols and rows must be whole numbers from 1 to ${MAX_SIDE}` };
  }
  if (type === 'signal') {
    return typeof name === 'string' && SIGNALS.includes(name)
      ? { type, name }
      : { problem: `signal: name must be one of ${SIGNALS.join(', ')}` };
  }
  if (of === 'shell') return { problem: 'type must be resize or signal' };
  return type === 'eof' ? { type } : { problem: 'type must be resize, signal or eof' };
};

const exitFrame = (exitCode: number | null, outOfMemory: boolean): string =>
  JSON.stringify({ type: 'exit', exitCode, oomKilled: outOfMemory || undefined });
const errorFrame = (error: string): string => JSON.stringify({ type: 'error', error });

const isSide = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_SIDE;

const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};
