import { instanceIdOf } from '../src/http/e2b/sandbox-id.ts';
import { encodeAsk, KeptConnection, type Ask, type RawAnswer } from './kept-connection.ts';
import { expectAll, type Load, type LoadResult } from './load.ts';
import { pause } from './process-facts.ts';

const FILL_DEADLINE_MS = 240_000;
const LOOK_EVERY_MS = 10;
const [FIRST_LOOK_MS, LEAST_PAUSE_MS, MOST_PAUSE_MS] = [100, 4, 1_000];
const DELETES_IN_FLIGHT = 16;

/** With the tenant's key unless a request has its own. */
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

  async call(ask: Ask, status: number): Promise<string> {
    const answer = await this.answerTo(ask);
    if (answer.status !== status)
      throw new Error(
        `${ask.method} ${ask.path} was answered with ${answer.status}: ${answer.body.slice(0, 300)}`,
      );
    return answer.body;
  }

  async answerTo(ask: Ask): Promise<RawAnswer> {
    // The daemon closes unused connections.
    if (!(await this.#connection).isOpen) this.#connection = KeptConnection.open(this.port);
    return await (await this.#connection).send(encodeAsk({ key: this.#key, ...ask }));
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

  /** Asks seldom, to cost the daemon little. */
  async untilIdle(name: string, count: number): Promise<void> {
    const began = performance.now();
    for (;;) {
      const status = await this.counts(name);
      const { idleReplicas: there = 0 } = status;
      if (there >= count) return;
      const tookMs = performance.now() - began;
      if (tookMs > FILL_DEADLINE_MS)
        throw new Error(`the pool did not fill: ${JSON.stringify(status)}`);
      const restMs = there === 0 ? FIRST_LOOK_MS : (tookMs * (count - there)) / there;
      await pause(Math.min(Math.max(restMs / 2, LEAST_PAUSE_MS), MOST_PAUSE_MS));
    }
  }

  async counts(name: string): Promise<Readonly<Record<string, number>>> {
    return countsIn(await this.call({ method: 'GET', path: `/sandboxpools/${name}` }, 200));
  }

  async untilNone(name: string): Promise<void> {
    const deadline = performance.now() + FILL_DEADLINE_MS;
    for (;;) {
      const status = await this.counts(name);
      if (Object.values(status).every((count) => typeof count !== 'number' || count === 0)) return;
      if (performance.now() > deadline)
        throw new Error(`the pool does not empty: ${JSON.stringify(status)}`);
      await pause(LOOK_EVERY_MS);
    }
  }

  async scale(name: string, replicas: number): Promise<void> {
    const body = JSON.stringify({ replicas });
    await this.call({ method: 'PUT', path: `/sandboxpools/${name}`, body }, 200);
  }

  async createFullPool(name: string, replicas: number, templateName?: string): Promise<void> {
    await this.createPool(name, replicas, templateName);
    await this.untilIdle(name, replicas);
  }

  /** With its sandboxes; resolves once it is gone. */
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

  /** As E2B's SDKs make them, for another port. */
  compatibleClaims(pool: string, count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: '/v2/sandboxes',
      key: this.#key,
      compatible: true,
      body: JSON.stringify({ templateID: pool }),
    }));
  }

  keyed(asks: readonly Ask[]): readonly Ask[] {
    return asks.map((ask) => ({ ...ask, key: this.#key }));
  }

  async claim(pool: string): Promise<string> {
    return (await this.claimed(pool)).sandboxId;
  }

  async claimed(pool: string): Promise<Claimed> {
    const body = JSON.stringify({ poolName: pool });
    const answer = await this.call({ method: 'POST', path: '/sandboxes', body }, 201);
    return (JSON.parse(answer) as ClaimAnswer).sandbox;
  }

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

export const countsIn = (body: string): Readonly<Record<string, number>> => {
  const { template } = JSON.parse(body) as {
    readonly template: { readonly status: Readonly<Record<string, number>> };
  };
  return template.status;
};

interface Claimed {
  readonly sandboxId: string;
  readonly podName: string;
}

interface ClaimAnswer {
  readonly sandbox: Claimed;
}

interface CompatibleId {
  readonly sandboxID: string;
}

const idIn = (answer: ClaimAnswer | CompatibleId): string =>
  'sandbox' in answer ? answer.sandbox.sandboxId : (instanceIdOf(answer.sandboxID) ?? '');
