import type { Duplex } from 'node:stream';
import {
  NotJoinable,
  OutcomeUnknown,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import { ApiUnreachable, LinkLate } from '../api/api-errors.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { ChannelStream } from './channel-stream.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import { agentOrder } from './agent-order.ts';
import {
  openCommand,
  RESIZE,
  runAgent,
  STATUS,
  STDIN,
  STDOUT,
  StatusReader,
  type CommandStatus,
} from './pod-command.ts';
import { endTree } from './end-tree.ts';
import { PID } from './exec-output.ts';
import type { PodLinks } from './pod-links.ts';
import { NoAgent } from './no-agent.ts';
import { AGENT } from '../sandboxes/pods/pod-agent.ts';
import {
  enterPod,
  isNodeSilent,
  NodeSilent,
  requireJoinable,
  type PodTarget,
} from '../sandboxes/pods/pod-presence.ts';
import { signalNumber } from '../../lib/signal-names.ts';
import { PROCESS_SIGNALS } from '../../model/process.ts';

const BEGIN_MS = 30_000;
/** Printed by the agent once it has the terminal's environment. */
const READY = 'ready';
/** The shell's exit code still counts this long after a hang-up. */
const STATUS_MS = 500;
const SIGNALS: ReadonlySet<string> = new Set(PROCESS_SIGNALS);

/**
 * Opens a terminal, as `SandboxDriver.attach` promises. Hazard: argv is in the URL, so also in
 * audit logs. Each signal or hang-up is a separate command, which takes about ten milliseconds.
 */
export const attachToPod = async (
  links: PodLinks,
  target: PodTarget,
  { argv, env, cols, rows }: TerminalRequest,
): Promise<Terminal> => {
  if (argv.some((argument) => argument.includes('\0'))) throw new Error('a command contains a NUL');
  const order = env && Object.keys(env).length > 0 ? agentOrder({ argv: [], env }) : undefined;
  await requireJoinable(links.api, target);
  const command = {
    argv: [AGENT, 'terminal', String(order?.length ?? 0), ...argv],
    stdin: true,
    tty: true,
  };
  const opening = openCommand(links, target, command).catch((error: unknown) => {
    throw error instanceof ApiUnreachable && !(error instanceof LinkLate)
      ? new OutcomeUnknown('the API server does not answer', { cause: error })
      : error;
  });
  const socket = await enterPod(links, target, opening);
  const terminal = new PodTerminal(links, target, { socket, order });
  await terminal.begin(cols, rows);
  return terminal;
};

interface Begun {
  readonly socket: ChannelSocket;
  readonly order: Buffer | undefined;
}

class PodTerminal implements Terminal {
  readonly stream: Duplex;
  readonly exit: Promise<number | null>;
  readonly #links: PodLinks;
  readonly #target: PodTarget;
  readonly #socket: ChannelSocket;
  readonly #channel: ChannelStream;
  readonly #reader = new StatusReader();
  #settle: (exitCode: number | null) => void = () => {};
  #beginning: { resolve(): void; reject(error: unknown): void } | undefined;
  readonly #head: TerminalHead;
  #order: Buffer | undefined;
  #closed = false;
  #over = false;
  readonly #signals = new Set<string>();
  #signalling = false;
  #size: { readonly Width: number; readonly Height: number } | undefined;
  #resizing = false;

  constructor(links: PodLinks, target: PodTarget, { socket, order }: Begun) {
    this.#links = links;
    this.#target = target;
    this.#socket = socket;
    this.#order = order;
    this.#head = new TerminalHead(order && READY);
    this.exit = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#channel = new ChannelStream(socket, STDIN, () => {
      this.#hangUp();
    });
    this.stream = this.#channel;
  }

  async begin(cols: number, rows: number): Promise<void> {
    const begun = new Promise<void>((resolve, reject) => {
      this.#beginning = { resolve, reject };
    });
    const timer = setTimeout(() => {
      this.#notBegun(new OutcomeUnknown('the terminal did not start in time'));
    }, BEGIN_MS);
    this.#socket.listen({
      data: (channel, bytes) => {
        this.#heard(channel, bytes);
      },
      closed: (why) => {
        this.#lost(why);
      },
    });
    this.resize(cols, rows);
    try {
      await begun;
    } finally {
      clearTimeout(timer);
    }
  }

  /** While one size is on its way, only the newest follows it. */
  resize(cols: number, rows: number): void {
    this.#size = { Width: cols, Height: rows };
    if (!this.#resizing) this.#sendSize();
  }

  signal(name: string): void {
    if (!SIGNALS.has(name)) throw new RangeError(`no such signal: ${name}`);
    if (this.#over || this.#closed) return;
    this.#signals.add(name);
    if (!this.#signalling) this.#links.background(this.#sendSignals());
  }

  close(): void {
    this.stream.destroy();
  }

  #sendSize(): void {
    const size = this.#size;
    this.#size = undefined;
    this.#resizing = size !== undefined;
    if (size)
      this.#socket.send(RESIZE, Buffer.from(JSON.stringify(size)), () => {
        this.#sendSize();
      });
  }

  async #sendSignals(): Promise<void> {
    this.#signalling = true;
    for (const name of this.#signals) {
      this.#signals.delete(name);
      if (!this.#over && this.#head.pid !== undefined)
        await runAgent(this.#links, this.#target, ['signal', this.#head.pid, signalNumber(name)]);
    }
    this.#signalling = false;
  }

  #heard(channel: number, bytes: Buffer): void {
    if (channel === STDOUT) {
      if (!this.#head.isOver) this.#readHead(bytes);
      else this.#channel.arrived(bytes);
    } else if (channel === STATUS) {
      const status = this.#reader.push(bytes);
      if (status) this.#ended(status);
    }
  }

  /** Sends the environment once the agent reads it: earlier, the terminal would echo it. */
  #readHead(bytes: Buffer): void {
    if (this.#over) return;
    let first: Buffer | undefined;
    try {
      first = this.#head.push(bytes);
    } catch (error) {
      return this.#notBegun(new NotJoinable('no terminal could be opened', { cause: error }));
    }
    if (this.#head.pid !== undefined && this.#order) {
      this.#socket.send(STDIN, this.#order, () => undefined);
      this.#order = undefined;
    }
    if (!first) return;
    this.#channel.arrived(first);
    this.#beginning?.resolve();
  }

  #ended(status: CommandStatus): void {
    if (!this.#head.isOver) return this.#notBegun(this.#unopened(status));
    if ('failure' in status) return this.#lost(status.failure);
    this.#finish();
    if (this.#closed || this.#channel.readableEnded) return this.#settle(status.exitCode);
    // After the last output, or once nobody reads it.
    this.#channel.once('close', () => {
      this.#settle(status.exitCode);
    });
    this.#channel.once('end', () => {
      this.#settle(status.exitCode);
    });
    this.#channel.push(null);
  }

  #lost(why: string): void {
    if (this.#over) return;
    const { pid, isOver } = this.#head;
    // Also before the head is complete: the shell may already be running.
    if (pid !== undefined && !this.#closed)
      this.#links.background(endTree(this.#links, this.#target, { pid, signal: 'HUP' }));
    if (!isOver || pid === undefined)
      return this.#notBegun(new OutcomeUnknown(`the terminal was cut off: ${why}`));
    this.#finish();
    this.#settle(null);
    this.#channel.destroy();
  }

  #unopened(status: CommandStatus): NotJoinable {
    if (!('failure' in status))
      return new NotJoinable('no terminal could be opened in the sandbox');
    if (status.failure.includes(AGENT)) return new NotJoinable(new NoAgent().message);
    if (!isNodeSilent(status.failure))
      return new NotJoinable(`no terminal could be opened: ${cleaned(status.failure)}`);
    this.#links.silent(this.#target);
    return new NodeSilent({ cause: new Error(status.failure) });
  }

  #notBegun(error: Error): void {
    this.#finish();
    this.#settle(null);
    this.#channel.destroy();
    requireJoinable(this.#links.api, this.#target).then(
      () => {
        this.#beginning?.reject(error);
      },
      (gone: unknown) => {
        this.#beginning?.reject(gone);
      },
    );
  }

  #hangUp(): void {
    this.#closed = true;
    if (this.#over || this.#head.pid === undefined) return;
    this.#socket.resume(); // drops further output
    const ended = endTree(this.#links, this.#target, { pid: this.#head.pid, signal: 'HUP' });
    this.#links.background(
      ended.then(() => {
        setTimeout(() => {
          this.#lost('it is no longer needed');
        }, STATUS_MS);
      }),
    );
  }

  #finish(): void {
    this.#over = true;
    this.#socket.close();
  }
}

/**
 * The agent's own output before the terminal's: its process id and, with an environment, the line
 * that confirms it.
 */
export class TerminalHead {
  readonly #until: string | undefined;
  #left = MOST_HEAD;
  #line = '';
  #pid: string | undefined;
  #isOver = false;

  /** `until`: the confirming line; undefined without an environment. */
  constructor(until: string | undefined) {
    this.#until = until;
  }

  get pid(): string | undefined {
    return this.#pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Throws if the head is too long. */
  push(bytes: Buffer): Buffer | undefined {
    this.#left -= bytes.length;
    if (this.#left < 0) throw new Error('the agent sent an unexpected answer');
    let at = 0;
    while (!this.#isOver) {
      const end = bytes.indexOf(NEWLINE, at);
      this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
      if (end < 0) return undefined;
      at = end + 1;
      this.#take(this.#line.trim());
      this.#line = '';
    }
    return bytes.subarray(at);
  }

  #take(line: string): void {
    if (this.#pid === undefined) {
      if (!PID.test(line)) throw new Error('the agent sent no process number');
      this.#pid = line;
      this.#isOver = this.#until === undefined;
    } else this.#isOver = line === this.#until;
  }
}

/** Includes output in the head's last frame. */
const MOST_HEAD = 1 << 20;
const NEWLINE = 10;
