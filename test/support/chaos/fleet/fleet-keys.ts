import type { Dice } from '../../builders/hostile-values.ts';
import { HttpClient, type HttpAnswer } from '../../harness/http-client.ts';
import { pause } from '../hands.ts';
import type { SeenKey } from './fleet-verdict.ts';

/** Any key may send it. */
const LOOK = '/sandboxpools?limit=1';
const ANSWER_MS = 12_000;
const EVERY_MS = 1_500;
const MOST_TRIES = 100;
/** More promoted keys are revoked first. */
const MOST_GOOD = 8;
const AGAIN_MS = 250;
const TRY_AGAIN_MS = 250;
const LANES = 6;

interface Key {
  readonly keyId: string;
  readonly text: string;
  isGood: boolean;
  since: number;
}

/** By the clock of `performance.now()`. */
export interface KeysSeen {
  readonly keys: readonly SeenKey[];
  readonly wrongUntil: number | undefined;
  readonly triedAt: number;
}

export interface KeyPlace {
  readonly name: string;
  readonly port: number;
}

/** Uses any replica of the manager. */
export class FleetKeys {
  readonly #keys: Key[] = [];
  readonly #managers: readonly HttpClient[];
  readonly #dice: Dice;
  #isOver = false;
  #work: Promise<void> = Promise.resolve();

  constructor(managers: readonly HttpClient[], dice: Dice) {
    [this.#managers, this.#dice] = [managers, dice];
  }

  get counts(): { readonly promoted: number; readonly revoked: number } {
    const revoked = this.#keys.filter(({ isGood }) => !isGood).length;
    return { promoted: this.#keys.length, revoked };
  }

  start(): void {
    this.#work = this.#run();
  }

  /** Resolves once requests in progress are acknowledged. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  /** The last changed first, until the answers are right or `deadline`; then once more. */
  async seen(places: readonly KeyPlace[], deadline: number): Promise<KeysSeen> {
    const keys = this.#keys.toSorted((a, b) => b.since - a.since);
    const answers = new Map(keys.map((key) => [key, new Map<string, number>()]));
    let wrongUntil: number | undefined;
    let tries = 0;
    const answerAt = async ({ port }: KeyPlace, { text, isGood }: Key): Promise<number> => {
      tries += 1;
      // few wrong keys are permitted per address and minute
      const localAddress = `127.1.${tries >> 8}.${tries & 255}`;
      const client = new HttpClient(port, text, { localAddress });
      try {
        for (;;) {
          const status = await client
            .get(LOOK, { signal: AbortSignal.timeout(ANSWER_MS) })
            .then((answer) => answer.status)
            .catch(() => 0);
          if (status === (isGood ? 200 : 401)) return status;
          wrongUntil = performance.now();
          if (wrongUntil > deadline) return status;
          await pause(TRY_AGAIN_MS);
        }
      } finally {
        client.close();
      }
    };
    await Promise.all(
      places.flatMap((place) => {
        const left = keys.values();
        return Array.from({ length: LANES }, async () => {
          for (const key of left) answers.get(key)?.set(place.name, await answerAt(place, key));
        });
      }),
    );
    const seen = keys.map((key): SeenKey => ({
      ...{ keyId: key.keyId, isGood: key.isGood },
      answers: [...(answers.get(key) ?? [])].map(([where, status]) => ({ where, status })),
    }));
    return { keys: seen, wrongUntil, triedAt: performance.now() };
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const good = this.#keys.filter(({ isGood }) => isGood);
      const [one] = good.splice(this.#dice.below(good.length), 1);
      if (one && (good.length >= MOST_GOOD || this.#dice.chance(0.4))) await this.#revoke(one);
      else await this.#promote();
      await pause(EVERY_MS, () => this.#isOver);
    }
  }

  async #promote(): Promise<void> {
    const made = await this.#ask('POST', '/api-keys', {});
    const { apiKey: text, keyId, name } = made?.json ?? {};
    if (text === undefined || keyId === undefined || name === undefined) return;
    const path = `/admin/api-keys/${encodeURIComponent(name)}/promote`;
    await this.#insist(
      'POST',
      path,
      ({ status, json }) => status === 200 || json.errorCode === 'ALREADY_GLOBAL',
    );
    this.#keys.push({ keyId, text, isGood: true, since: performance.now() });
  }

  async #revoke(key: Key): Promise<void> {
    await this.#insist(
      'DELETE',
      `/api-keys/${key.keyId}`,
      ({ status }) => status === 200 || status === 404,
    );
    Object.assign(key, { isGood: false, since: performance.now() });
  }

  async #insist(
    method: string,
    path: string,
    isDone: (answer: HttpAnswer) => boolean,
  ): Promise<void> {
    for (let left = MOST_TRIES; left > 0; left -= 1) {
      const answer = await this.#ask(method, path);
      if (answer && isDone(answer)) return;
      await pause(AGAIN_MS);
    }
    throw new Error(`${method} ${path} is not acknowledged`);
  }

  /** Undefined if the answer is unknown. */
  async #ask(method: string, path: string, body?: object): Promise<HttpAnswer | undefined> {
    const client = this.#managers[this.#dice.below(this.#managers.length)];
    const signal = AbortSignal.timeout(ANSWER_MS);
    return await client?.send(method, path, { signal, body }).catch(() => undefined);
  }
}
