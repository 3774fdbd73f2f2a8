import type { KeptDeadLetter } from '../../contracts/coordination/dead-letters.ts';
import type { WebhookReport } from '../../model/approvals/webhook-report.ts';
import { newsOf, type ApprovalNews } from '../../model/approvals/approval-news.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { shardOf } from '../../model/shards.ts';
import { messageOf } from './webhook-message.ts';
import { WebhookQueue, type WebhookQueueDeps, type WebhookReceiver } from './webhook-queue.ts';

export interface WebhooksDeps extends WebhookQueueDeps {
  readonly receivers: readonly WebhookReceiver[];
  /** Whether this replica publishes the shard's approvals. */
  readonly leads: (shard: number) => boolean;
}

export interface ReceiverLetters {
  readonly address: string;
  readonly deadLetters: readonly KeptDeadLetter[];
}

interface Noted {
  readonly news: ApprovalNews;
  readonly shard: number;
  isQueued: boolean;
}

/** Another replica sends them if the leader fails. */
const MOST_NOTED = 4_096;

/**
 * Every replica notes the outcome of approvals, and each shard's leader sends it. A new leader
 * sends what was not sent before. News beyond the maximum age are dropped.
 */
export class Webhooks {
  readonly #deps: WebhooksDeps;
  readonly #queues: readonly WebhookQueue[];
  readonly #noted = new Map<string, Noted>();

  constructor(deps: WebhooksDeps) {
    this.#deps = deps;
    this.#queues = deps.receivers.map((receiver) => new WebhookQueue(deps, receiver));
    deps.metrics.read('sandpool_webhook_messages_waiting', () => [
      { labels: {}, value: this.#queues.reduce((sum, { size }) => sum + size, 0) },
    ]);
  }

  note(record: ApprovalRecord): void {
    const since = this.#deps.clock.now() - this.#deps.giveUpMs;
    for (const news of newsOf(record)) {
      if (news.at <= since || this.#noted.has(news.id)) continue;
      const noted = { news, shard: shardOf(record.id), isQueued: false };
      this.#noted.set(news.id, noted);
      if (this.#deps.leads(noted.shard)) this.#queue(noted);
    }
    for (const [id, { news }] of this.#noted) {
      if (this.#noted.size <= MOST_NOTED && news.at > since) break;
      this.#noted.delete(id);
    }
  }

  lead(shard: number): void {
    const since = this.#deps.clock.now() - this.#deps.giveUpMs;
    for (const noted of this.#noted.values())
      if (noted.shard === shard && !noted.isQueued && noted.news.at > since) this.#queue(noted);
  }

  report(): readonly WebhookReport[] {
    return this.#queues.map((queue) => queue.report());
  }

  async deadLetters(): Promise<readonly ReceiverLetters[]> {
    return await Promise.all(
      this.#queues.map(async (queue) => ({
        address: queue.address,
        deadLetters: await queue.deadLetters(),
      })),
    );
  }

  async revive(id: string | undefined): Promise<number> {
    let revived = 0;
    for (const queue of this.#queues)
      for (const letter of await queue.deadLetters()) {
        if (id !== undefined && letter.id !== id) continue;
        queue.revive(letter);
        revived += 1;
      }
    return revived;
  }

  stop(): void {
    for (const queue of this.#queues) queue.stop();
  }

  #queue(noted: Noted): void {
    noted.isQueued = true;
    const message = messageOf(noted.news, this.#deps.terms);
    for (const queue of this.#queues) queue.put(message, noted.news.at + this.#deps.giveUpMs);
  }
}
