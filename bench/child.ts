import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

type Answer<Result> = { readonly result: Result } | { readonly failed: string };

/** Measured code is compiled; script/bench starts in the root folder. */
const COMPILED = 'node_modules/.sandpool-bench/bench';
const DEADLINE_MS = 300_000;

export class Child<Order extends object, Result> {
  readonly #program: string;
  readonly #process: ChildProcess;

  constructor(program: string) {
    this.#program = program;
    this.#process = fork(resolve(COMPILED, `${program}.js`), {
      serialization: 'advanced',
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error(`${this.#program} could not be started`);
    return this.#process.pid;
  }

  /** Rejects if the order fails, the child ends, or no answer comes in time. */
  async ask(order: Order): Promise<Result> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(DEADLINE_MS)]);
    const ended = once(this.#process, 'exit', { signal }).then(([code]) => {
      throw new Error(`${this.#program} ended with ${String(code)}`);
    });
    ended.catch(() => undefined);
    try {
      const message = once(this.#process, 'message', { signal });
      this.#process.send(order);
      const [answer] = (await Promise.race([message, ended])) as [Answer<Result>];
      if ('failed' in answer) throw new Error(`${this.#program} failed: ${answer.failed}`);
      return answer.result;
    } finally {
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.disconnect();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(timer);
  }
}

/** Carries out each order of the parent, and ends with the parent. */
export const answerOrders = <Order extends object, Result>(
  carryOut: (order: Order) => Promise<Result>,
): void => {
  process.on('message', (order: Order) => {
    carryOut(order)
      .then(
        (result): Answer<Result> => ({ result }),
        (error: unknown): Answer<Result> => ({
          failed: error instanceof Error ? (error.stack ?? error.message) : String(error),
        }),
      )
      .then(
        (answer) => process.send?.(answer),
        () => undefined,
      );
  });
  process.on('disconnect', () => process.exit(0));
};
