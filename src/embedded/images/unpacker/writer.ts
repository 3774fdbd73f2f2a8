import { Worker } from 'node:worker_threads';
import { threadModule } from '../../../lib/thread-module.ts';
import type { Step } from './image-tree.ts';

/** `content` continues the open file. */
export type Write =
  | Step
  | { readonly kind: 'content'; readonly length: number }
  | { readonly kind: 'end' };

export interface Batch {
  readonly writes: readonly Write[];
  readonly bytes: Uint8Array;
}

export interface Written {
  readonly failed?: { readonly code: string; readonly message: string };
}

const BATCH_BYTES = 1 << 20;
const BATCH_WRITES = 512;
const MAX_UNDER_WAY = 4;

/** In a thread, in parallel with reading and decompression. */
export class Writer {
  readonly #worker: Worker;
  #writes: Write[] = [];
  #bytes = Buffer.allocUnsafeSlow(BATCH_BYTES);
  #filled = 0;
  #underWay = 0;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  constructor(root: string) {
    this.#worker = new Worker(threadModule('./writer-thread', import.meta.url), {
      name: 'writer',
      workerData: root,
    });
    this.#worker.on('message', ({ failed }: Written) => {
      this.#underWay -= 1;
      if (failed) this.#fail(Object.assign(new Error(failed.message), { code: failed.code }));
      this.#wake();
    });
    this.#worker.on('error', (error) => this.#fail(error));
  }

  step(step: Step): void {
    this.#add(step);
  }

  content(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      const part = chunk.subarray(at, at + BATCH_BYTES - this.#filled);
      this.#bytes.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      this.#add({ kind: 'content', length: part.length });
      if (this.#filled === BATCH_BYTES) this.#send();
    }
  }

  endFile(): void {
    this.#add({ kind: 'end' });
  }

  /** Throws if a write failed. */
  get hasRoom(): boolean {
    if (this.#failure) throw this.#failure;
    return this.#underWay < MAX_UNDER_WAY;
  }

  /** Rejects if a write failed. */
  async room(): Promise<void> {
    while (!this.hasRoom) await this.#change();
  }

  async flush(): Promise<void> {
    this.#send();
    while (this.#underWay > 0) {
      if (this.#failure) throw this.#failure;
      await this.#change();
    }
    if (this.#failure) throw this.#failure;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #add(write: Write): void {
    this.#writes.push(write);
    if (this.#writes.length >= BATCH_WRITES) this.#send();
  }

  #send(): void {
    if (this.#writes.length === 0) return;
    const batch: Batch = { writes: this.#writes, bytes: this.#bytes.subarray(0, this.#filled) };
    this.#worker.postMessage(batch, [this.#bytes.buffer]);
    this.#underWay += 1;
    this.#writes = [];
    this.#bytes = Buffer.allocUnsafeSlow(BATCH_BYTES);
    this.#filled = 0;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#wake();
  }

  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}
