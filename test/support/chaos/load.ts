import { randomUUID } from 'node:crypto';
import type { Dice } from '../hostile-values.ts';
import type { HttpAnswer } from '../http-client.ts';
import type { Asked } from './history.ts';
import type { Recorder } from './recorder.ts';

export interface LoadDeps {
  readonly recorder: Recorder;
  readonly replicas: number;
  /** Who claims from which pool; clients are shared out over them. */
  readonly pools: readonly { readonly user: string; readonly name: string }[];
  readonly clients: number;
  readonly dice: Dice;
  /** Ids of the user's running sandboxes, as some replica lists them. */
  readonly running: (user: string) => Promise<readonly string[]>;
}

const MOST_TRIES = 8;
/** A delete is repeated until it is acknowledged, so that no pool runs dry. */
const DELETE_TRIES = 100;
const TIDY_EVERY_MS = 4_000;
/** Of each pool; they run until the end. */
const KEPT = 2;

/** Clients that claim, look, run commands and delete without pause, as a balancer with retries would have it. */
export class Load {
  /** Claimed, and not yet asked to end. */
  readonly held = new Set<string>();
  /** Held until the end. */
  readonly kept = new Map<string, string>();
  readonly #deps: LoadDeps;
  #workers: Promise<void>[] = [];
  #over = false;
  #claims = 0;

  constructor(deps: LoadDeps) { this.#deps = deps; }

  /** Acknowledged. */
  get claims(): number { return this.#claims; }

  start(): void {
    const { clients, pools } = this.#deps;
    this.#workers = Array.from({ length: clients }, (_, n) => this.#work(pools[n % pools.length] ?? { user: '', name: '' }));
    for (const user of new Set(pools.map((pool) => pool.user))) this.#workers.push(this.#tidy(user));
    this.#workers.push(this.#makePools());
  }

  /** Resolves once every client has come to the end of its round. */
  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#workers);
  }

  /** Until it is acknowledged, or gone. */
  async end(user: string, id: string): Promise<void> {
    this.held.delete(id);
    this.kept.delete(id);
    await this.#insist(user, { what: 'delete', id }, DELETE_TRIES);
  }

  async #work({ user, name }: { readonly user: string; readonly name: string }): Promise<void> {
    const { dice } = this.#deps;
    while (!this.#over) {
      const key = dice.chance(0.4) ? randomUUID() : undefined;
      const id = await this.#claim(user, name, key);
      if (id === undefined) {
        await pause(50 + dice.below(300));
        continue;
      }
      await this.#use(user, id);
      if (await this.#keeps(user, name, id)) continue;
      await this.end(user, id);
      if (dice.chance(0.6)) await this.#send(user, { what: 'get', id });
      if (dice.chance(0.05)) await this.#send(user, { what: 'exec', id });
      if (key !== undefined && dice.chance(0.2)) {
        const again = await this.#claim(user, name, key);
        if (again !== undefined && again !== id) await this.end(user, again);
      }
    }
  }

  async #claim(user: string, pool: string, key: string | undefined): Promise<string | undefined> {
    const asked: Asked = { what: 'claim', pool, ...(key === undefined ? {} : { key }) };
    const answer = key === undefined ? await this.#send(user, asked) : await this.#insist(user, asked, MOST_TRIES);
    const id = answer?.status === 201 ? answer.json.sandbox?.['sandboxId'] : undefined;
    if (id === undefined) return undefined;
    this.held.add(id);
    this.#claims += 1;
    return id;
  }

  async #use(user: string, id: string): Promise<void> {
    const { dice } = this.#deps;
    if (dice.chance(0.5)) await this.#send(user, { what: 'get', id });
    if (dice.chance(0.15)) await this.#send(user, { what: 'exec', id });
    await pause(dice.chance(0.9) ? dice.below(100) : 500 + dice.below(3_000));
  }

  async #keeps(user: string, pool: string, id: string): Promise<boolean> {
    const { dice } = this.#deps;
    if (!dice.chance(0.02) || [...this.kept.values()].filter((of) => of === `${user} ${pool}`).length >= KEPT) return false;
    this.kept.set(id, `${user} ${pool}`);
    return true;
  }

  /** Ends what runs and nobody knows of: claims whose answer was lost. */
  async #tidy(user: string): Promise<void> {
    let before = new Set<string>();
    while (!this.#over) {
      await pause(TIDY_EVERY_MS, () => this.#over);
      const unknown = new Set((await this.#deps.running(user)).filter((id) => !this.held.has(id)));
      for (const id of unknown) if (before.has(id)) await this.end(user, id);
      before = unknown;
    }
  }

  /** Pools come and go too. */
  async #makePools(): Promise<void> {
    const { pools, dice } = this.#deps;
    const { user } = pools[0] ?? { user: '' };
    while (!this.#over) {
      const pool = `passing-${randomUUID().slice(0, 8)}`;
      const made = await this.#insist(user, { what: 'create-pool', pool }, MOST_TRIES);
      await this.#send(user, { what: 'get-pool', pool });
      if (made?.status === 201 && dice.chance(0.5)) {
        const id = await this.#claim(user, pool, undefined);
        if (id !== undefined) await this.end(user, id);
      }
      await this.#insist(user, { what: 'delete-pool', pool }, DELETE_TRIES);
      await pause(2_000 + dice.below(3_000), () => this.#over);
    }
  }

  /** To some replica; from one that is out of reach, or says so, to another. */
  async #insist(user: string, asked: Asked, tries: number): Promise<HttpAnswer | undefined> {
    for (let left = tries; left > 0; left -= 1) {
      const answer = await this.#send(user, asked);
      if (answer && answer.status !== 503 && answer.json.errorCode !== 'IDEMPOTENCY_IN_FLIGHT') return answer;
      await pause(100 + this.#deps.dice.below(300));
    }
    return undefined;
  }

  #send(user: string, asked: Asked): Promise<HttpAnswer | undefined> {
    const { recorder, replicas, dice } = this.#deps;
    return recorder.send(user, dice.below(replicas), asked);
  }
}

const pause = async (ms: number, enough: () => boolean = () => false): Promise<void> => {
  const deadline = performance.now() + ms;
  for (let left = ms; left > 0 && !enough(); left = deadline - performance.now()) await new Promise((resolve) => { setTimeout(resolve, Math.min(left, 200)); });
};
