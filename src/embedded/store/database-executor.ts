import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { DatabaseExecutor, ExecutorListener } from './database-engine.ts';
import type {
  Call,
  CheckpointOrder,
  EngineOptions,
  FromWorker,
  ToWorker,
} from './database-protocol.ts';
import { threadModule } from '../../lib/thread-module.ts';

/** During a move to another thread. */
export class QueueingExecutor implements DatabaseExecutor {
  readonly calls: Call[] = [];

  submit(call: Call): void {
    this.calls.push(call);
  }

  checkpoints(): Promise<void> {
    return Promise.reject(new Error('the database is moving to another thread'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A thread of its own: each call costs two wake-ups, but a slow disk does not block the loop. */
export class WorkerExecutor implements DatabaseExecutor {
  readonly #worker: Worker;
  #ordered: (() => void) | undefined;
  #closing = false;

  constructor(options: EngineOptions, { answered, failed }: ExecutorListener) {
    this.#worker = new Worker(threadModule('./database-worker', import.meta.url), {
      name: 'database',
      workerData: options,
    });
    this.#worker.on('message', (message: FromWorker) => {
      if (message.kind === 'answered') answered(message.results, message.ms);
      else if (message.kind === 'failed') failed(new Error(message.message));
      else this.#ordered?.();
    });
    this.#worker.on('error', failed);
    this.#worker.on('exit', () => {
      if (!this.#closing) failed(new Error('the database thread ended'));
    });
  }

  submit(call: Call): void {
    this.#send(call);
  }

  checkpoints(order: CheckpointOrder): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error('the database did not answer')),
        ORDER_DEADLINE_MS,
      );
      this.#ordered = () => {
        clearTimeout(late);
        resolve();
      };
      this.#send(order);
    });
  }

  async close(withinMs: number): Promise<void> {
    if (this.#worker.threadId === -1) return;
    const gone = once(this.#worker, 'exit', { signal: AbortSignal.timeout(withinMs) });
    if (!this.#closing) this.#send('close');
    this.#closing = true;
    await gone.catch(() => {
      // Terminating it during a call would wait for the disk, and on Node 20 end the process with
      // an uncatchable error.
      this.#worker.unref();
      throw new Error(`the database thread did not end in ${withinMs} ms`);
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

const ORDER_DEADLINE_MS = 30_000;
