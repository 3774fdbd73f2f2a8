import { Worker } from 'node:worker_threads';
import { stringify } from 'yaml';
import { threadModule } from '../../../lib/thread-module.ts';

export interface YamlOrder {
  readonly id: number;
  readonly json: string;
}
export interface YamlText {
  readonly id: number;
  readonly text: string;
}

/** In characters; shorter JSON takes less than 1 ms, so it stays on this thread. */
const SHORT = 8_192;
/** In ms; a restart takes 50 ms, off the event loop. */
const IDLE_MS = 1_000;

interface Awaited {
  readonly resolve: (text: string) => void;
  readonly reject: (cause: Error) => void;
}

/**
 * Generates YAML of large documents in a worker thread that runs only while needed: 270 KB take 30
 * ms.
 */
export class YamlThread {
  readonly #awaited = new Map<number, Awaited>();
  #worker: Worker | undefined;
  #lastId = 0;
  #idle: NodeJS.Timeout | undefined;

  /** Writes no aliases, and omits undefined fields. */
  async textOf(document: object): Promise<string> {
    const json = JSON.stringify(document);
    if (json.length <= SHORT) return stringify(document, { aliasDuplicateObjects: false });
    clearTimeout(this.#idle);
    const worker = (this.#worker ??= this.#start());
    const id = (this.#lastId += 1);
    const text = new Promise<string>((resolve, reject) => {
      this.#awaited.set(id, { resolve, reject });
    });
    const order: YamlOrder = { id, json };
    worker.postMessage(order);
    return await text;
  }

  #start(): Worker {
    const worker = new Worker(threadModule('./yaml-worker', import.meta.url), { name: 'yaml' });
    worker.on('message', ({ id, text }: YamlText) => {
      this.#awaited.get(id)?.resolve(text);
      this.#awaited.delete(id);
      if (this.#awaited.size > 0) return;
      this.#idle = setTimeout(() => {
        this.#end(worker);
      }, IDLE_MS);
    });
    worker.on('error', (cause) => {
      this.#broke(worker, cause instanceof Error ? cause : new Error(String(cause)));
    });
    worker.on('exit', () => {
      this.#broke(worker, new Error('the YAML thread ended'));
    });
    return worker;
  }

  #end(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined;
    void worker.terminate();
  }

  #broke(worker: Worker, cause: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#awaited.values()) reject(cause);
    this.#awaited.clear();
  }
}
