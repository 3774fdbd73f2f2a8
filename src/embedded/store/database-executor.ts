import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { MAX_BATCH, type DatabaseEngine } from './database-engine.ts';
import type {
  Call,
  CheckpointOrder,
  EngineOptions,
  FromWorker,
  Results,
  ToWorker,
} from './database-protocol.ts';
import { threadModule } from '../../lib/thread-module.ts';

/**
 * Commits calls. What it was given is answered in order, or `failed` is called, once, and nothing
 * more.
 */
export interface DatabaseExecutor {
  submit(call: Call): void;
  /** See DatabaseEngine; one order at a time. */
  checkpoints(order: CheckpointOrder): Promise<void>;
  /**
   * Finishes what was submitted, `withinMs` at most, then lets go of the file. Rejects where that
   * took longer, or failed.
   */
  close(withinMs: number): Promise<void>;
}

export interface ExecutorListener {
  /** Told the results of one transaction, and the milliseconds that it took. */
  readonly answered: (results: Results, ms: number) => void;
  readonly failed: (cause: Error) => void;
}

/**
 * The daemon's own thread: calls of one turn of the loop share a commit. The way with the least
 * delay, as long as the disk answers fast: a transaction blocks the loop.
 */
export class InlineExecutor implements DatabaseExecutor {
  readonly #engine: DatabaseEngine;
  readonly #listener: ExecutorListener;
  readonly #waiting: Call[] = [];
  #over = false;

  constructor(engine: DatabaseEngine, listener: ExecutorListener) {
    this.#engine = engine;
    this.#listener = listener;
  }

  submit(call: Call): void {
    if (this.#waiting.push(call) === 1) setImmediate(this.#turn);
  }

  async checkpoints(order: CheckpointOrder): Promise<void> {
    if (this.#over) throw new Error('the database is closed');
    this.#engine.checkpoints(order);
  }

  async close(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#over) this.#commit();
    if (this.#over) return;
    this.#over = true;
    this.#engine.close();
  }

  readonly #turn = (): void => {
    if (this.#over) return;
    this.#commit();
    if (this.#waiting.length > 0 && !this.#over) setImmediate(this.#turn);
  };

  #commit(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) return;
    const began = performance.now();
    let results: Results;
    try {
      results = this.#engine.run(batch);
    } catch (error) {
      this.#over = true;
      this.#listener.failed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#listener.answered(results, performance.now() - began);
  }
}

/** Keeps calls while the file goes from one seat to another. */
export class QueueingExecutor implements DatabaseExecutor {
  readonly calls: Call[] = [];

  submit(call: Call): void {
    this.calls.push(call);
  }

  checkpoints(): Promise<void> {
    return Promise.reject(new Error('the file is on its way'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/**
 * A thread for the database alone: what waits there shares a commit. Each call costs two wake-ups,
 * and a slow disk blocks nobody.
 */
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
        () => reject(new Error('the database gave no answer')),
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
      // Left to itself. To end it within a call would wait for the disk, and on Node 20 end the
      // whole process: the package throws where nobody can catch.
      this.#worker.unref();
      throw new Error(`the database thread did not end in ${withinMs} ms`);
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

const ORDER_DEADLINE_MS = 30_000;
