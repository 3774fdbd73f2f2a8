import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { ChainEnd } from './audit-chain.ts';
import { withPipes } from '../../lib/processes.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';

/**
 * The line comes without its line end. Rejects on failure. An abort of `signal` ends the program
 * that it runs.
 */
export type AnchorPlace = (line: string, signal: AbortSignal) => Promise<void>;

export interface AuditAnchorOptions {
  readonly place: AnchorPlace;
  readonly replica: string;
  readonly clock: Clock;
  readonly log: Log;
}

const ANCHOR_MS = 60_000;
const TELL_MS = 10_000;
const STOP_MS = 2_000;
const MOST_STDERR = 500;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Reports the end of the audit chain to a destination of the audit's owner, so that a later rewrite
 * of the chain shows. A line is `TIME REPLICA NUMBER:HASH`, and its line of the chain is already on
 * disk.
 */
export class AuditAnchor {
  readonly #options: AuditAnchorOptions;
  #end: ChainEnd | undefined;
  #told = 0;
  #triedAt = Number.NEGATIVE_INFINITY;
  #problem: string | undefined;
  #cancel: (() => void) | undefined;
  #telling: Promise<void> | undefined;
  #giveUp: (afterMs: number) => void = () => {};

  constructor(options: AuditAnchorOptions) {
    this.#options = options;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  moved(end: ChainEnd): void {
    this.#end = end;
    const { clock } = this.#options;
    if (this.#telling) return;
    this.#cancel ??= clock.at(Math.max(clock.now(), this.#triedAt + ANCHOR_MS), () => {
      void this.#tell(TELL_MS);
    });
  }

  async settled(): Promise<void> {
    await this.#telling;
  }

  /** Takes at most 2 s. */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + STOP_MS;
    const callOff = clock.at(until, () => this.#giveUp(STOP_MS));
    await this.#telling;
    callOff();
    this.#cancel?.();
    const leftMs = until - clock.now();
    if (this.#end && this.#end.seq > this.#told && leftMs > 0) await this.#tell(leftMs);
    this.#cancel?.();
  }

  /** Never rejects. */
  async #tell(withinMs: number): Promise<void> {
    this.#cancel = undefined;
    this.#telling = this.#tellNow(withinMs).finally(() => {
      this.#telling = undefined;
    });
    await this.#telling;
    if (this.#end && this.#end.seq > this.#told) this.moved(this.#end);
  }

  async #tellNow(withinMs: number): Promise<void> {
    const { place, replica, clock, log } = this.#options;
    const end = this.#end;
    if (!end) return;
    this.#triedAt = clock.now();
    const late = new AbortController();
    this.#giveUp = (afterMs) =>
      late.abort(new Error(`it took more than ${Math.ceil(afterMs / 1_000)} s`));
    const callOff = clock.at(clock.now() + withinMs, () => this.#giveUp(withinMs));
    try {
      const line = `${new Date(clock.now()).toISOString()} ${replica} ${end.seq}:${end.hash}`;
      await unlessAborted(late.signal, place(line, late.signal));
      this.#told = end.seq;
      if (this.#problem !== undefined) log.info({ seq: end.seq }, 'audit-anchor-sent-again');
      this.#problem = undefined;
    } catch (error) {
      if (this.#problem === undefined) log.warn({ error }, 'audit-anchor-not-sent');
      this.#problem =
        "the latest audit entry can't be sent to audit.anchor: " +
        `${error instanceof Error ? error.message : String(error)}`;
    } finally {
      callOff();
    }
  }
}

const SYSLOG = '/dev/log';

/** `file:/PATH`, `syslog`, `command:/PATH`. */
export const anchorPlace = (setting: string, syslog = SYSLOG): AnchorPlace => {
  if (setting === 'syslog') return told('logger', loggerArgs(syslog));
  const path = setting.slice(setting.indexOf(':') + 1);
  if (setting.startsWith('command:')) return told(path, []);
  return async (line) => {
    await appendFile(path, `${line}\n`, { mode: 0o600 });
  };
};

/**
 * With these, `logger` fails if nothing listens; otherwise it drops the line and exits with 0 in a
 * container.
 */
const loggerArgs = (socket: string): readonly string[] => [
  ...['--socket', socket, '--socket-errors=on'],
  ...['--tag', 'sandpool-audit', '--priority', 'auth.notice'],
];

/**
 * The program gets the system's PATH and no variable of the daemon. If it takes too long, its
 * process group is killed.
 */
const told =
  (program: string, args: readonly string[]): AnchorPlace =>
  async (line, signal) => {
    const child = withPipes(
      spawn(program, args, {
        stdio: ['pipe', 'ignore', 'pipe'],
        env: { PATH },
        detached: true, // its own group
      }),
    );
    const end = (): void => killGroup(child.pid);
    signal.addEventListener('abort', end, { once: true });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(0, MOST_STDERR);
    });
    child.stdin.on('error', () => {}); // it may exit without reading
    child.stdin.end(`${line}\n`);
    // a left-behind child may hold the pipe open for ever
    child.once('exit', () => setImmediate(() => child.stderr.destroy()));
    const [code, by] = (await once(child, 'close').finally(() =>
      signal.removeEventListener('abort', end),
    )) as [number | null, string | null];
    if (code !== 0)
      throw new Error(
        `${program} ended with ${code ?? by}${said === '' ? '' : `: ${said.trim()}`}`,
      );
  };

const killGroup = (pid: number | undefined): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // already exited
  }
};
