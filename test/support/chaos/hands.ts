import type { Dice } from '../builders/hostile-values.ts';
import type { HttpAnswer } from '../harness/http-client.ts';
import { Gate } from './gate.ts';
import type { Asked, ClaimAsked } from './history.ts';
import type { Recorder } from './recorder.ts';

const MOST_TRIES = 8;
/** Deletes repeat until they are acknowledged, so that no pool runs dry. */
export const DELETE_TRIES = 100;

export class Hands {
  /** Claimed, without a request to end. */
  readonly held = new Set<string>();
  readonly gate = new Gate();
  readonly dice: Dice;
  isOver = false;
  claims = 0;
  readonly #recorder: Recorder;
  readonly #replicas: number;

  constructor({
    recorder,
    replicas,
    dice,
  }: {
    readonly recorder: Recorder;
    readonly replicas: number;
    readonly dice: Dice;
  }) {
    [this.#recorder, this.#replicas, this.dice] = [recorder, replicas, dice];
  }

  /** Until the load is over; a pause waits for a round's end. */
  async again(round: () => Promise<void>): Promise<void> {
    while (!this.isOver)
      await this.gate.through(async () => {
        if (!this.isOver) await round();
      });
  }

  send(
    user: string,
    asked: Asked,
    replica = this.dice.below(this.#replicas),
  ): Promise<HttpAnswer | undefined> {
    return this.#recorder.send(user, replica, asked);
  }

  /** Tries other replicas if one is unreachable or unavailable. */
  async insist(user: string, asked: Asked, tries = MOST_TRIES): Promise<HttpAnswer | undefined> {
    for (let left = tries; left > 0; left -= 1) {
      const answer = await this.send(user, asked);
      if (answer && answer.status !== 503 && answer.json.errorCode !== 'IDEMPOTENCY_IN_FLIGHT')
        return answer;
      await pause(100 + this.dice.below(300));
    }
    return undefined;
  }

  async claim(user: string, asked: ClaimAsked): Promise<string | undefined> {
    const answer =
      asked.key === undefined ? await this.send(user, asked) : await this.insist(user, asked);
    const id = answer?.status === 201 ? answer.json.sandbox?.['sandboxId'] : undefined;
    if (id === undefined) return undefined;
    this.held.add(id);
    this.claims += 1;
    return id;
  }

  async end(user: string, id: string): Promise<void> {
    this.held.delete(id);
    await this.insist(user, { what: 'delete', id }, DELETE_TRIES);
  }

  /** Shorter if the load pauses or ends. */
  async idle(ms: number): Promise<void> {
    await pause(ms, () => this.isOver || this.gate.isClosed);
  }
}

export const pause = async (ms: number, enough: () => boolean = () => false): Promise<void> => {
  const deadline = performance.now() + ms;
  for (let left = ms; left > 0 && !enough(); left = deadline - performance.now())
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(left, 200));
    });
};
