import { Child } from '../child.ts';
import type { RawAnswer, RawOrder, RawResult } from './raw-protocol.ts';

/** The raw client's process, as figures use it. */
export class RawClient {
  readonly #child = new Child<RawOrder, RawAnswer>('kubernetes/raw-process', {
    deadlineMs: 300_000,
  });

  get pid(): number {
    return this.#child.pid;
  }

  async ask(order: RawOrder): Promise<RawResult> {
    const answer = await this.#child.ask(order);
    if ('failed' in answer) throw new Error(`the raw client failed: ${answer.failed}`);
    return answer.result;
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}
