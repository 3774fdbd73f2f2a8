import { randomBytes } from 'node:crypto';
import {
  NotJoinable,
  OutcomeUnknown,
  type ExecOutcome,
  type ExecRequest,
} from '../../contracts/sandbox-driver.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import { ExecOutput } from './exec-output.ts';
import { agentOrder } from './agent-order.ts';
import {
  openCommand,
  STATUS,
  STDERR,
  STDIN,
  STDOUT,
  StatusReader,
  type CommandStatus,
} from './pod-command.ts';
import { NoAgent } from './no-agent.ts';
import type { PodLinks } from './pod-links.ts';
import { AGENT } from '../sandboxes/pods/pod-agent.ts';
import {
  enterWhileLooking,
  isNodeSilent,
  NodeSilent,
  requireJoinable,
  type PodTarget,
} from '../sandboxes/pods/pod-presence.ts';
import { endTree } from './end-tree.ts';
import { Deferred } from '../../lib/deferred.ts';

const TIMED_OUT = 124;

const BEGIN_MS = 30_000;

/**
 * Background processes may keep a command's output open after its end. Waits for a pause of this
 * length.
 */
const QUIET_MS = 300;

/** Limits that wait in total. */
const LAST_WORDS_MS = 3_000;

const CHUNK = 64 << 10;

/**
 * Runs a command, as `SandboxDriver.exec` promises. Argv, folder, environment and input go to the
 * agent by standard input, so the command is not in the URL, nor in audit logs. Ends a command that
 * is cut off, if it is still reachable.
 */
export const execInPod = async (
  links: PodLinks,
  target: PodTarget,
  { request, signal }: { readonly request: ExecRequest; readonly signal: AbortSignal },
): Promise<ExecOutcome> => {
  signal.throwIfAborted();
  const execution = new Execution(links, target, request);
  const abort = (): void => {
    execution.abort(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await execution.run();
  } finally {
    signal.removeEventListener('abort', abort);
  }
};

class Execution {
  readonly #links: PodLinks;
  readonly #target: PodTarget;
  readonly #request: ExecRequest;
  readonly #order: Buffer;
  readonly #output: ExecOutput;
  readonly #startedAt = performance.now();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #outcome = new Deferred<ExecOutcome>();
  #socket: ChannelSocket | undefined;
  readonly #reader = new StatusReader();
  #begun = false;
  #timedOut = false;
  #over = false;
  #isEnding = false;
  #pause: NodeJS.Timeout | undefined;

  /** Throws if the order contains a NUL. */
  constructor(links: PodLinks, target: PodTarget, request: ExecRequest) {
    this.#links = links;
    this.#target = target;
    this.#request = request;
    const token = `${randomBytes(16).toString('hex')} `;
    this.#output = new ExecOutput(token, request.outputLimit, request.gathered);
    this.#order = agentOrder({
      argv: request.argv,
      cwd: request.cwd,
      env: request.env,
      told: token,
    });
  }

  async run(): Promise<ExecOutcome> {
    this.#after(this.#request.timeoutMs, () => {
      this.#timeOut();
    });
    this.#after(BEGIN_MS, () => {
      if (!this.#begun) this.#fail(new NotJoinable('the command did not start in time'));
    });
    this.#begin().catch((error: unknown) => {
      this.#fail(error);
    });
    try {
      return await this.#outcome.promise;
    } finally {
      this.#over = true;
      for (const timer of this.#timers) clearTimeout(timer);
      clearTimeout(this.#pause);
      this.#socket?.close();
    }
  }

  abort(reason: unknown): void {
    this.#fail(reason);
    this.#end();
  }

  async #begin(): Promise<void> {
    // The agent waits for its order, which is sent after the check of the Pod.
    const argv = [AGENT, 'run', String(this.#order.length)];
    const opening = openCommand(this.#links, this.#target, { argv, stdin: true, tty: false });
    const socket = await enterWhileLooking(this.#links, this.#target, opening);
    if (this.#over) return socket.close();
    this.#socket = socket;
    socket.listen({
      data: (channel, bytes) => {
        this.#take(channel, bytes);
      },
      closed: (why) => {
        this.#cut(why);
      },
    });
  }

  #take(channel: number, bytes: Buffer): void {
    try {
      if (!this.#over) this.#heard(channel, bytes);
    } catch (error) {
      this.abort(error); // its output exceeds the limits
    }
  }

  #heard(channel: number, bytes: Buffer): void {
    if (channel === STDOUT) this.#output.stdout(bytes);
    else if (channel === STDERR) this.#output.stderr(bytes);
    else if (channel === STATUS) {
      const status = this.#reader.push(bytes);
      if (status) this.#ended(status);
      return;
    }
    if (!this.#begun && this.#output.pid !== undefined) {
      this.#begun = true;
      this.#socket?.send(STDIN, this.#order);
      this.#sendInput(this.#request.stdin);
    }
    if (this.#output.exitCode !== undefined) this.#awaitLastWords(this.#output.exitCode);
  }

  #sendInput(text = ''): void {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += CHUNK)
      this.#socket?.send(STDIN, bytes.subarray(at, at + CHUNK));
    this.#socket?.end(STDIN);
  }

  #awaitLastWords(exitCode: number): void {
    const { isWhole } = this.#output;
    if (isWhole && !this.#isEnding) {
      this.#isEnding = true;
      this.#after(LAST_WORDS_MS, () => {
        this.#finish(exitCode);
      });
    }
    clearTimeout(this.#pause);
    this.#pause = setTimeout(
      () => {
        this.#finish(exitCode);
      },
      isWhole ? QUIET_MS : LAST_WORDS_MS,
    );
  }

  #ended(status: CommandStatus): void {
    if (this.#output.exitCode !== undefined) return this.#finish(this.#output.exitCode);
    if (this.#begun) return this.#endedUnsaid(status);
    if (lacksAgent(status)) return this.#notBegun(new NoAgent().message);
    this.#notBegun('failure' in status ? status.failure : 'the agent was killed');
  }

  /**
   * Without an exit code from the agent, only a failure's code is reliable: a restarting runtime
   * reports Success for lost commands.
   */
  #endedUnsaid(status: CommandStatus): void {
    if ('failure' in status) this.#cut(status.failure);
    else if (status.exitCode !== 0) this.#finish(status.exitCode);
    else
      this.#cut('the container runtime reported success, but the command did not report its end');
  }

  #notBegun(failure: string): void {
    if (isNodeSilent(failure)) {
      this.#links.silent(this.#target);
      return this.#fail(new NodeSilent({ cause: new Error(failure) }));
    }
    requireJoinable(this.#links.api, this.#target).then(
      () => {
        this.#fail(new NotJoinable(`nothing could be run in the sandbox: ${cleaned(failure)}`));
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  #cut(why: string): void {
    if (this.#over) return;
    if (this.#output.exitCode !== undefined) return this.#finish(this.#output.exitCode);
    if (!this.#begun) return this.#notBegun(why);
    if (this.#timedOut) return this.#finish(TIMED_OUT);
    this.#fail(new OutcomeUnknown(`the command was cut off: ${why}`));
    this.#end();
  }

  #timeOut(): void {
    if (this.#output.exitCode !== undefined) return this.#finish(this.#output.exitCode);
    if (!this.#begun) return this.#fail(new NotJoinable('the command did not start in time'));
    this.#timedOut = true;
    this.#end();
    this.#after(LAST_WORDS_MS, () => {
      this.#finish(TIMED_OUT);
    });
  }

  /** Runs in the background; callers do not wait. */
  #end(): void {
    const pid = this.#output.pid;
    if (this.#begun && pid !== undefined)
      this.#links.background(endTree(this.#links, this.#target, { pid, signal: 'KILL' }));
  }

  #finish(exitCode: number): void {
    if (this.#over) return;
    this.#over = true;
    const { stdout, stderr, truncated } = this.#output.taken();
    this.#outcome.resolve({
      stdout,
      stderr,
      exitCode: this.#timedOut ? TIMED_OUT : exitCode,
      timedOut: this.#timedOut,
      truncated,
      durationMs: Math.round(performance.now() - this.#startedAt),
    });
  }

  #fail(error: unknown): void {
    this.#over = true;
    this.#outcome.reject(error);
  }

  #after(ms: number, due: () => void): void {
    this.#timers.add(setTimeout(due, ms));
  }
}

/**
 * Some runtimes return exit codes of their own if the program is missing. A signal's code means
 * that the agent was killed.
 */
const lacksAgent = (status: CommandStatus): boolean =>
  'exitCode' in status
    ? status.exitCode > 0 && status.exitCode <= MOST_OWN_CODE
    : status.failure.includes(AGENT);

const MOST_OWN_CODE = 128;
