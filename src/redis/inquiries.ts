import { randomUUID } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import {
  MAX_REPLICA_ANSWER,
  MAX_REPLICA_QUESTION,
  type Inquiries,
} from '../contracts/coordination/inquiries.ts';
import type { RedisChannels } from './channels.ts';
import type { Keys } from './keys.ts';

export interface RedisInquiriesDeps {
  readonly channels: Pick<RedisChannels, 'tell' | 'follow'>;
  readonly keys: Keys;
  readonly clock: Clock;
  /** Also names its channel. */
  readonly replica: string;
}

/** Open questions, and questions being answered. */
const MOST_OPEN = 64;
const MOST_ANSWERED_AT_ONCE = 16;

type Message =
  | { readonly id: string; readonly from: string; readonly question: string }
  | { readonly id: string; readonly answer: string };

/** Channels store nothing, so a lost message stays unanswered. */
export class RedisInquiries implements Inquiries {
  readonly #deps: RedisInquiriesDeps;
  readonly #open = new Map<string, (answer: string | undefined) => void>();
  #answer: ((question: string) => Promise<string>) | undefined;
  #answering = 0;

  constructor(deps: RedisInquiriesDeps) {
    this.#deps = deps;
    deps.channels.follow(deps.keys.asked(deps.replica), (text) => {
      this.#hear(text);
    });
  }

  askReplica(replica: string, question: string, withinMs: number): Promise<string | undefined> {
    if (this.#open.size >= MOST_OPEN || question.length > MAX_REPLICA_QUESTION)
      return Promise.resolve(undefined);
    const { clock } = this.#deps;
    const id = randomUUID();
    return new Promise((resolve) => {
      const settle = (answer: string | undefined): void => {
        cancel();
        this.#open.delete(id);
        resolve(answer);
      };
      const cancel = clock.at(clock.now() + withinMs, () => {
        settle(undefined);
      });
      this.#open.set(id, settle);
      this.#send(replica, { id, from: this.#deps.replica, question });
    });
  }

  answerReplicas(answer: (question: string) => Promise<string>): () => void {
    this.#answer = answer;
    return () => {
      if (this.#answer === answer) this.#answer = undefined;
    };
  }

  #send(replica: string, message: Message): void {
    this.#deps.channels.tell(this.#deps.keys.asked(replica), JSON.stringify(message));
  }

  #hear(text: string): void {
    const message = messageIn(text);
    if (!message) return;
    if ('answer' in message) this.#open.get(message.id)?.(message.answer);
    else void this.#answerTo(message);
  }

  /** Never rejects. */
  async #answerTo({ id, from, question }: Extract<Message, { question: string }>): Promise<void> {
    if (!this.#answer || this.#answering >= MOST_ANSWERED_AT_ONCE) return;
    this.#answering += 1;
    const answer = await this.#answer(question).catch(() => undefined);
    this.#answering -= 1;
    if (answer !== undefined && answer.length <= MAX_REPLICA_ANSWER)
      this.#send(from, { id, answer });
  }
}

/** Undefined for messages of unknown form. */
const messageIn = (text: string): Message | undefined => {
  try {
    const message = JSON.parse(text) as Partial<
      Record<'id' | 'from' | 'question' | 'answer', unknown>
    >;
    const { id, from, question, answer } = message;
    if (typeof id !== 'string') return undefined;
    if (typeof answer === 'string') return { id, answer };
    return typeof from === 'string' &&
      typeof question === 'string' &&
      question.length <= MAX_REPLICA_QUESTION
      ? { id, from, question }
      : undefined;
  } catch {
    return undefined;
  }
};
