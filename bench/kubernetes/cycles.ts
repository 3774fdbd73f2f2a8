import { BalancedClient, claimedId, type Outcome } from './balanced-client.ts';

/** Claims and deletes at a fixed rate, whatever happens, and notes each outcome. */
export class Cycles {
  readonly outcomes: Outcome[] = [];
  readonly #client: BalancedClient;
  readonly #pool: string;
  readonly #timer: NodeJS.Timeout;
  readonly #running = new Set<Promise<void>>();

  constructor(client: BalancedClient, pool: string, perSecond: number) {
    this.#client = client;
    this.#pool = pool;
    this.#timer = setInterval(() => {
      const one = this.#one().finally(() => {
        this.#running.delete(one);
      });
      this.#running.add(one);
    }, 1_000 / perSecond);
  }

  async stop(): Promise<readonly Outcome[]> {
    clearInterval(this.#timer);
    await Promise.all(this.#running);
    return this.outcomes;
  }

  async #one(): Promise<void> {
    const claimed = await this.#client.send('POST', '/sandboxes', { poolName: this.#pool });
    this.outcomes.push(claimed);
    const id = claimedId(claimed);
    if (id !== undefined) this.outcomes.push(await this.#client.send('DELETE', `/sandboxes/${id}`));
  }
}

export const isGood = ({ status }: Outcome): boolean => status >= 200 && status < 300;
