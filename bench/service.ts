import { instanceIdOf } from '../src/e2b/sandbox-id.ts';
import { encodeAsk, KeptConnection, type Ask, type RawAnswer } from './kept-connection.ts';
import { expectAll, type Load } from './load.ts';
import type { LoadResult } from './load-protocol.ts';
import { pause } from './process-facts.ts';

const FILL_DEADLINE_MS = 240_000;
const LOOK_EVERY_MS = 10;
const [FIRST_LOOK_MS, LEAST_PAUSE_MS, MOST_PAUSE_MS] = [100, 4, 1_000];
const DELETES_IN_FLIGHT = 16;

/** A daemon's API, as figures use it. Whatever isn't answered as it should be is an error. */
export class Service {
  readonly port: number;
  readonly #key: string;
  readonly #load: Load;
  #connection: Promise<KeptConnection>;

  constructor(port: number, key: string, load: Load) {
    this.port = port;
    this.#key = key;
    this.#load = load;
    this.#connection = KeptConnection.open(port);
  }

  async call(ask: Omit<Ask, 'key'>, status: number): Promise<string> {
    const answer = await this.answerTo(ask);
    if (answer.status !== status)
      throw new Error(
        `${ask.method} ${ask.path} was answered with ${answer.status}: ${answer.body.slice(0, 300)}`,
      );
    return answer.body;
  }

  async answerTo(ask: Omit<Ask, 'key'>): Promise<RawAnswer> {
    // The daemon closes what nobody has used for a while.
    if (!(await this.#connection).isOpen) this.#connection = KeptConnection.open(this.port);
    return await (await this.#connection).send(encodeAsk({ ...ask, key: this.#key }));
  }

  async createPool(name: string, replicas: number, templateName = 'default'): Promise<void> {
    await this.call(
      {
        method: 'POST',
        path: '/sandboxpools',
        body: JSON.stringify({ name, templateName, replicas }),
      },
      201,
    );
  }

  /**
   * Resolves when so many of the pool are idle, or run. Asks as seldom as it can, so that asking
   * costs the daemon little.
   */
  async untilIdle(
    name: string,
    count: number,
    as: 'idleReplicas' | 'runningReplicas' = 'idleReplicas',
  ): Promise<void> {
    const began = performance.now();
    for (;;) {
      const pool = JSON.parse(
        await this.call({ method: 'GET', path: `/sandboxpools/${name}` }, 200),
      ) as PoolAnswer;
      const there = pool.template.status[as];
      if (there >= count) return;
      const tookMs = performance.now() - began;
      if (tookMs > FILL_DEADLINE_MS)
        throw new Error(`the pool did not fill: ${JSON.stringify(pool.template.status)}`);
      const restMs = there === 0 ? FIRST_LOOK_MS : (tookMs * (count - there)) / there;
      await pause(Math.min(Math.max(restMs / 2, LEAST_PAUSE_MS), MOST_PAUSE_MS));
    }
  }

  /** Resolves when the pool has neither idle nor starting ones. */
  async untilNone(name: string): Promise<void> {
    const deadline = performance.now() + FILL_DEADLINE_MS;
    for (;;) {
      const {
        template: { status },
      } = JSON.parse(
        await this.call({ method: 'GET', path: `/sandboxpools/${name}` }, 200),
      ) as PoolAnswer;
      if (Object.values(status).every((count) => typeof count !== 'number' || count === 0)) return;
      if (performance.now() > deadline)
        throw new Error(`the pool does not empty: ${JSON.stringify(status)}`);
      await pause(LOOK_EVERY_MS);
    }
  }

  async createFullPool(name: string, replicas: number, templateName?: string): Promise<void> {
    await this.createPool(name, replicas, templateName);
    await this.untilIdle(name, replicas);
  }

  /** With all that runs in it; resolves once it is gone. */
  async removePool(name: string): Promise<void> {
    await this.call({ method: 'DELETE', path: `/sandboxpools/${name}?force=true` }, 200);
    const deadline = performance.now() + FILL_DEADLINE_MS;
    while ((await this.answerTo({ method: 'GET', path: `/sandboxpools/${name}` })).status !== 404) {
      if (performance.now() > deadline) throw new Error(`the pool ${name} does not go`);
      await pause(LOOK_EVERY_MS);
    }
  }

  claims(pool: string, count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: '/sandboxes',
      key: this.#key,
      body: JSON.stringify({ poolName: pool }),
    }));
  }

  /** The same claims as E2B's SDKs make them; they are for another port. */
  compatibleClaims(pool: string, count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: '/v2/sandboxes',
      key: this.#key,
      compatible: true,
      body: JSON.stringify({ templateID: pool }),
    }));
  }

  /** The same requests with the tenant's key. */
  keyed(asks: readonly Ask[]): readonly Ask[] {
    return asks.map((ask) => ({ ...ask, key: this.#key }));
  }

  /** So many times the same command in a sandbox. */
  commands(id: string, command: readonly string[], count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: `/sandboxes/${id}/exec`,
      key: this.#key,
      body: JSON.stringify({ command }),
    }));
  }

  async claim(pool: string): Promise<string> {
    const body = await this.call(
      { method: 'POST', path: '/sandboxes', body: JSON.stringify({ poolName: pool }) },
      201,
    );
    return (JSON.parse(body) as ClaimAnswer).sandbox.sandboxId;
  }

  /** Deletes what these claims got. */
  async giveBack(claimed: LoadResult): Promise<void> {
    expectAll(claimed, 201);
    const ids = claimed.bodies.map((body) => idIn(JSON.parse(body) as ClaimAnswer | CompatibleId));
    const asks = ids.map((id): Ask => ({
      method: 'DELETE',
      path: `/sandboxes/${id}`,
      key: this.#key,
    }));
    expectAll(await this.#load.closed(this.port, asks, DELETES_IN_FLIGHT), 200);
  }

  async close(): Promise<void> {
    (await this.#connection).close();
  }
}

interface PoolAnswer {
  readonly template: {
    readonly status: { readonly idleReplicas: number; readonly runningReplicas: number };
  };
}

interface ClaimAnswer {
  readonly sandbox: { readonly sandboxId: string };
}

interface CompatibleId {
  readonly sandboxID: string;
}

const idIn = (answer: ClaimAnswer | CompatibleId): string =>
  'sandbox' in answer ? answer.sandbox.sandboxId : (instanceIdOf(answer.sandboxID) ?? '');
