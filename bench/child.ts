import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

export interface ChildOptions {
  readonly args?: readonly string[];
  readonly execArgv?: readonly string[];
  readonly deadlineMs?: number;
}

/** What is measured is compiled, whoever asks for it; script/bench starts in the root folder. */
const COMPILED = 'node_modules/.sandpool-bench/bench';
const DEADLINE_MS = 120_000;

/** A program of this folder in a process of its own, that answers each message with one. */
export class Child<Order, Answer> {
  readonly process: ChildProcess;
  readonly #deadlineMs: number;

  constructor(
    program: string,
    { args = [], execArgv = [], deadlineMs = DEADLINE_MS }: ChildOptions = {},
  ) {
    const path = resolve(COMPILED, `${program}.js`);
    this.process = fork(path, args, {
      execArgv: [...execArgv],
      serialization: 'advanced',
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#deadlineMs = deadlineMs;
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error('the process could not be started');
    return this.process.pid;
  }

  /** The next message of the child. Rejects when it ends first, or says nothing in time. */
  async hear(): Promise<Answer> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(this.#deadlineMs)]);
    const ended = once(this.process, 'exit', { signal }).then(([code]) => {
      throw new Error(`the process ended with ${String(code)}`);
    });
    try {
      const [answer]: unknown[] = await Promise.race([
        once(this.process, 'message', { signal }),
        ended,
      ]);
      return answer as Answer;
    } finally {
      over.abort();
      ended.catch(() => undefined);
    }
  }

  async ask(order: Order): Promise<Answer> {
    const answer = this.hear();
    this.process.send(order as object);
    return await answer;
  }

  /** The child ends when it notices. */
  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.disconnect();
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(timer);
  }
}
