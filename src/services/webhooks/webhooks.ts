import type { KeptDeadLetter } from '../../contracts/coordination/dead-letters.ts';
import type { WebhookReport } from '../../model/approvals/webhook-report.ts';
import { newsOf, type ApprovalNews } from '../../model/approvals/approval-news.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { shardOf } from '../../model/shards.ts';
import { messageOf } from './webhook-message.ts';
import { WebhookQueue, type WebhookQueueDeps, type WebhookReceiver } from './webhook-queue.ts';

export interface WebhooksDeps extends WebhookQueueDeps {
  readonly receivers: readonly WebhookReceiver[];
  /** Whether this replica leads the shard, and tells of its approvals. */
  readonly leads: (shard: number) => boolean;
}

/** The dead letters of one receiver. */
export interface ReceiverLetters {
  readonly address: string;
  readonly deadLetters: readonly KeptDeadLetter[];
}

interface Noted {
  readonly news: ApprovalNews;
  readonly shard: number;
  /** It was handed to the queues here. */
  isQueued: boolean;
}

/** News that is remembered, so that another replica tells it where the leader could not. */
const MOST_NOTED = 4_096;

/**
 * Tells receivers outside what becomes of approvals. Every replica notes what the records show, and
 * the leader of each tells it; who leads next tells what nobody did. What is too old is not told.
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

  /** Takes in what a record shows by now. Waits for nothing. */
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

  /** This replica leads the shard from now on. */
  lead(shard: number): void {
    const since = this.#deps.clock.now() - this.#deps.giveUpMs;
    for (const noted of this.#noted.values())
      if (noted.shard === shard && !noted.isQueued && noted.news.at > since) this.#queue(noted);
  }

  /** How each receiver stands, in the order of the settings. */
  report(): readonly WebhookReport[] {
    return this.#queues.map((queue) => queue.report());
  }

  /** The dead letters of each receiver, of all replicas, in the order of the settings. */
  async deadLetters(): Promise<readonly ReceiverLetters[]> {
    return await Promise.all(
      this.#queues.map(async (queue) => ({
        address: queue.address,
        deadLetters: await queue.deadLetters(),
      })),
    );
  }

  /** Has dead letters sent again, all or those of one message; returns how many. */
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
