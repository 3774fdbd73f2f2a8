import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { ChainEnd } from './audit-chain.ts';

/**
 * Takes a line, which has no end, to where the owner of the machine wants it. Rejects where it
 * could not.
 */
export type AnchorPlace = (line: string) => Promise<void>;

export interface AuditAnchorOptions {
  readonly place: AnchorPlace;
  readonly replica: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** From one line to the next, where the chain went on; also until it is tried again. */
export const ANCHOR_MS = 60_000;
const TELL_MS = 10_000;
const STOP_MS = 2_000;
const MOST_STDERR = 500;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Tells a place that the audit's owner chose where the chain stands: when it begins, once a minute
 * while it grows, when it ends. Whoever writes the chain anew later can't take that back. A line is
 * `TIME REPLICA NUMBER:HASH`, and its line of the chain is on the disk already.
 */
export class AuditAnchor {
  readonly #options: AuditAnchorOptions;
  #end: ChainEnd | undefined;
  #told = 0;
  #triedAt = Number.NEGATIVE_INFINITY;
  #problem: string | undefined;
  #cancel: (() => void) | undefined;
  #telling: Promise<void> | undefined;

  constructor(options: AuditAnchorOptions) {
    this.#options = options;
  }

  /** Why it was not told the last time; undefined where all is well. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The chain is on the disk up to there. */
  moved(end: ChainEnd): void {
    this.#end = end;
    const { clock } = this.#options;
    if (this.#telling) return;
    this.#cancel ??= clock.at(Math.max(clock.now(), this.#triedAt + ANCHOR_MS), () => {
      void this.#tell(TELL_MS);
    });
  }

  /** Resolves when no telling is under way. */
  async settled(): Promise<void> {
    await this.#telling;
  }

  /** Tells where the chain ended; within 2 s. */
  async stop(): Promise<void> {
    await this.#telling;
    this.#cancel?.();
    if (this.#end && this.#end.seq > this.#told) await this.#tell(STOP_MS);
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
    let callOff = (): void => {};
    try {
      const late = new Promise<never>((_, reject) => {
        callOff = clock.at(clock.now() + withinMs, () =>
          reject(new Error(`it took more than ${withinMs / 1_000} s`)),
        );
      });
      await Promise.race([
        place(`${new Date(clock.now()).toISOString()} ${replica} ${end.seq}:${end.hash}`),
        late,
      ]);
      this.#told = end.seq;
      if (this.#problem !== undefined)
        log.info({ seq: end.seq }, 'the head of the audit is told again');
      this.#problem = undefined;
    } catch (error) {
      if (this.#problem === undefined)
        log.warn({ error }, 'the head of the audit can not be told (audit.anchor)');
      this.#problem =
        "the head of the audit can't be told (audit.anchor): " +
        `${error instanceof Error ? error.message : String(error)}`;
    } finally {
      callOff();
    }
  }
}

/** The socket at which the machine's syslog listens. */
const SYSLOG = '/dev/log';

/** Parses a setting: `file:/PATH`, `syslog`, `command:/PATH`. */
export const anchorPlace = (setting: string, syslog = SYSLOG): AnchorPlace => {
  if (setting === 'syslog') return told('logger', loggerArgs(syslog));
  const path = setting.slice(setting.indexOf(':') + 1);
  if (setting.startsWith('command:')) return told(path, []);
  return async (line) => {
    await appendFile(path, `${line}\n`, { mode: 0o600 });
  };
};

/**
 * Returns arguments by which `logger` fails where nobody listens. Without them it drops the line
 * and ends with 0 wherever systemd is not the first process, as in a container.
 */
const loggerArgs = (socket: string): readonly string[] => [
  ...['--socket', socket, '--socket-errors=on'],
  ...['--tag', 'sandpool-audit', '--priority', 'auth.notice'],
];

/**
 * A program that reads the line, and ends with 0. It has no variable of the daemon's, and the
 * system's PATH.
 */
const told =
  (program: string, args: readonly string[]): AnchorPlace =>
  async (line) => {
    const child = spawn(program, args, {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: { PATH },
      timeout: TELL_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(0, MOST_STDERR);
    });
    child.stdin.on('error', () => {}); // it may end without reading
    child.stdin.end(`${line}\n`);
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    if (code !== 0)
      throw new Error(
        `${program} ended with ${code ?? signal}${said === '' ? '' : `: ${said.trim()}`}`,
      );
  };
