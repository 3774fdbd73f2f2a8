import type { Dice } from '../../builders/hostile-values.ts';
import { HttpClient, type HttpAnswer } from '../../harness/http-client.ts';
import { pause } from '../hands.ts';
import type { SeenKey } from './fleet-verdict.ts';

/** What any key may ask. */
const LOOK = '/sandboxpools?limit=1';
const ANSWER_MS = 12_000;
const EVERY_MS = 1_500;
const MOST_TRIES = 100;
/** Promoted at a time; past it one is revoked before another is made. */
const MOST_GOOD = 8;
const AGAIN_MS = 250;
const TRY_AGAIN_MS = 1_000;

interface Key {
  readonly keyId: string;
  readonly text: string;
  isGood: boolean;
}

/** An address where keys are tried. */
export interface KeyPlace {
  readonly name: string;
  readonly port: number;
}

/** An administrator who makes, promotes and revokes keys, each at some replica of the manager. */
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

  /** Resolves once what is under way is acknowledged. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  /**
   * Tries each key at each place again and again until it is answered as it should be, or for so
   * long; returns how each was answered last.
   */
  async seen(places: readonly KeyPlace[], withinMs: number): Promise<readonly SeenKey[]> {
    const deadline = performance.now() + withinMs;
    // an address may try few wrong keys a minute, so each try comes from one of its own
    let tries = 0;
    const answerAt = async ({ port }: KeyPlace, { text, isGood }: Key): Promise<number> => {
      tries += 1;
      const localAddress = `127.1.${tries >> 8}.${tries & 255}`;
      const client = new HttpClient(port, text, { localAddress });
      try {
        for (;;) {
          const status = await client
            .get(LOOK, { signal: AbortSignal.timeout(ANSWER_MS) })
            .then((answer) => answer.status)
            .catch(() => 0);
          if (status === (isGood ? 200 : 401) || performance.now() > deadline) return status;
          await pause(TRY_AGAIN_MS);
        }
      } finally {
        client.close();
      }
    };
    const seen: SeenKey[] = [];
    for (const key of this.#keys) {
      const answers = await Promise.all(
        places.map(async (place) => ({ where: place.name, status: await answerAt(place, key) })),
      );
      seen.push({ keyId: key.keyId, isGood: key.isGood, answers });
    }
    return seen;
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
    if (text === undefined || keyId === undefined || name === undefined) return; // of no use to anybody
    const path = `/admin/api-keys/${encodeURIComponent(name)}/promote`;
    await this.#insist(
      'POST',
      path,
      ({ status, json }) => status === 200 || json.errorCode === 'ALREADY_GLOBAL',
    );
    this.#keys.push({ keyId, text, isGood: true });
  }

  async #revoke(key: Key): Promise<void> {
    await this.#insist(
      'DELETE',
      `/api-keys/${key.keyId}`,
      ({ status }) => status === 200 || status === 404,
    );
    key.isGood = false;
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

  /** Undefined: the answer is unknown. */
  async #ask(method: string, path: string, body?: object): Promise<HttpAnswer | undefined> {
    const client = this.#managers[this.#dice.below(this.#managers.length)];
    const signal = AbortSignal.timeout(ANSWER_MS);
    return await client
      ?.send(method, path, { signal, ...(body ? { body } : {}) })
      .catch(() => undefined);
  }
}
