import { join } from 'node:path';
import { Child } from './child.ts';
import type { Ask } from './kept-connection.ts';

export interface BareOrder {
  readonly path: string;
  /**
   * `direct`: a transaction for each request. `gathered`: requests of one turn of the event loop
   * share a commit. `worker`: requests that wait for a worker thread share a commit.
   */
  readonly mode: 'direct' | 'gathered' | 'worker';
}

export class Bare {
  readonly port: number;
  readonly #child: Child<BareOrder, number>;

  private constructor(child: Child<BareOrder, number>, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(folder: string, mode: BareOrder['mode']): Promise<Bare> {
    const child = new Child<BareOrder, number>('bare-server');
    return new Bare(child, await child.ask({ path: join(folder, `bare-${mode}.db`), mode }));
  }

  get pid(): number {
    return this.#child.pid;
  }

  asks(count: number): readonly Ask[] {
    const body = JSON.stringify({ poolName: 'bench' });
    return Array.from({ length: count }, () => ({ method: 'POST', path: '/', body }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }
}
