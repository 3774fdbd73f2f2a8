import { expect } from 'chai';
import type { LogLine } from '../../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from './eventually.ts';
import type { PodStreamsUnderTest } from '../cluster/pod-streams.ts';

/** Follows a Pod's log in the background. */
export class Following {
  readonly lines: LogLine[] = [];
  readonly #controller = new AbortController();
  readonly over: Promise<unknown>;

  constructor(under: PodStreamsUnderTest, pod: PodTarget, after: string) {
    this.over = this.#follow(under, pod, after);
    this.over.catch(() => {}); // awaited by those who need it
  }

  async until(text: string): Promise<void> {
    const came = eventually(
      () => this.lines.some((line) => String(line.text) === text),
      `"${text.slice(0, 40)}" came`,
      () => this.lines.slice(-10).map((line) => String(line.text)),
    );
    await Promise.race([
      came,
      this.over.then(() => {
        throw new Error('the log has ended');
      }),
    ]);
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    await this.over;
  }

  async #follow(under: PodStreamsUnderTest, pod: PodTarget, after: string): Promise<void> {
    for await (const { lines, skipped } of under.streams.followLogs(
      pod,
      after,
      this.#controller.signal,
    )) {
      expect(skipped).to.equal(false);
      this.lines.push(...lines);
    }
  }
}
