import { randomUUID } from 'node:crypto';
import type { Dice } from '../builders/hostile-values.ts';
import { Hands, pause } from './hands.ts';
import type { ClaimAsked } from './history.ts';
import { gatedEnd, gatedRound } from './load-gated.ts';
import { envRound } from './load-envs.ts';
import { passingTenantRound, poolRound } from './load-pools.ts';
import type { Recorder } from './recorder.ts';

export interface LoadDeps {
  readonly recorder: Recorder;
  readonly replicas: number;
  readonly pools: readonly { readonly user: string; readonly name: string }[];
  readonly clients: number;
  readonly dice: Dice;
  readonly makers: { readonly envs: string; readonly pools: string };
  readonly gated?: string;
  readonly passing?: string;
  /** As some replica lists them. */
  readonly running: (user: string) => Promise<readonly string[]>;
}

const TIDY_EVERY_MS = 4_000;
/** Enough to meet their quota. */
const POOL_MAKERS = 2;
const GATED = 3;
/** Per pool; they run until the end. */
const KEPT = 2;

/** Clients behave like a balancer with retries. */
export class Load {
  readonly kept = new Map<string, string>();
  readonly #deps: LoadDeps;
  readonly #hands: Hands;
  #workers: Promise<void>[] = [];

  constructor(deps: LoadDeps) {
    [this.#deps, this.#hands] = [deps, new Hands(deps)];
  }

  get claims(): number {
    return this.#hands.claims;
  }

  start(): void {
    const { clients, pools, makers, passing, gated } = this.#deps;
    const hands = this.#hands;
    const begin = (round: () => Promise<void>): void => {
      this.#workers.push(hands.again(round));
    };
    for (let n = 0; n < clients; n += 1)
      begin(() => this.#claimRound(pools[n % pools.length] ?? { user: '', name: '' }));
    for (const user of new Set(pools.map((pool) => pool.user)))
      begin(this.#tidyRound(user, (id) => this.end(user, id)));
    if (gated !== undefined) {
      for (let n = 0; n < GATED; n += 1) begin(() => gatedRound(hands, gated));
      begin(this.#tidyRound(gated, (id) => gatedEnd(hands, gated, id)));
    }
    for (let n = 0; n < POOL_MAKERS; n += 1) begin(() => poolRound(hands, makers.pools));
    begin(() => envRound(hands, makers.envs));
    if (passing !== undefined) begin(() => passingTenantRound(hands, passing));
  }

  /** Resolves with true once no client is in a round; false after `withinMs`. */
  async pause(withinMs: number): Promise<boolean> {
    return await this.#hands.gate.close(withinMs);
  }

  resume(): void {
    this.#hands.gate.open();
  }

  async stop(): Promise<void> {
    this.#hands.isOver = true;
    this.resume();
    await Promise.all(this.#workers);
  }

  async end(user: string, id: string): Promise<void> {
    this.kept.delete(id);
    await this.#hands.end(user, id);
  }

  async #claimRound({
    user,
    name,
  }: {
    readonly user: string;
    readonly name: string;
  }): Promise<void> {
    const hands = this.#hands;
    const { dice } = hands;
    if (dice.chance(0.05)) return await this.#idleRound(user, name);
    const key = dice.chance(0.4) ? randomUUID() : undefined;
    const asked: ClaimAsked = {
      what: 'claim',
      pool: name,
      ...(key === undefined ? {} : { key }),
      ...(dice.chance(0.2) ? { waitSeconds: 1 + dice.below(4) } : {}),
    };
    const [id, twin] = await Promise.all([
      hands.claim(user, asked),
      key !== undefined && dice.chance(0.2) ? hands.claim(user, asked) : undefined,
    ]);
    if (twin !== undefined && twin !== id) await this.end(user, twin);
    if (id === undefined) return await pause(50 + dice.below(300));
    await this.#use(user, id);
    if (await this.#keeps(user, name, id)) return;
    await this.end(user, id);
    if (dice.chance(0.6)) await hands.send(user, { what: 'get', id });
    if (dice.chance(0.05)) await hands.send(user, { what: 'exec', id });
    if (key === undefined || !dice.chance(0.2)) return;
    const again = await hands.claim(user, asked);
    if (again !== undefined && again !== id) await this.end(user, again);
  }

  async #use(user: string, id: string): Promise<void> {
    const { dice } = this.#hands;
    if (dice.chance(0.5)) await this.#hands.send(user, { what: 'get', id });
    if (dice.chance(0.15)) await this.#hands.send(user, { what: 'exec', id });
    await pause(dice.chance(0.9) ? dice.below(100) : 500 + dice.below(3_000));
  }

  /** Ends by its idle timeout, though not during a command at any replica. */
  async #idleRound(user: string, pool: string): Promise<void> {
    const hands = this.#hands;
    const idleSeconds = 2 + hands.dice.below(4);
    const id = await hands.claim(user, { what: 'claim', pool, idleSeconds });
    if (id === undefined) return await pause(50 + hands.dice.below(300));
    await hands.send(user, { what: 'exec', id, seconds: idleSeconds + 1 });
    await hands.send(user, { what: 'get', id });
    if (hands.dice.chance(0.5)) await this.end(user, id);
    else hands.held.delete(id);
  }

  async #keeps(user: string, pool: string, id: string): Promise<boolean> {
    const { dice } = this.#hands;
    if (
      !dice.chance(0.02) ||
      [...this.kept.values()].filter((of) => of === `${user} ${pool}`).length >= KEPT
    )
      return false;
    this.kept.set(id, `${user} ${pool}`);
    return true;
  }

  /** Their answers were lost. */
  #tidyRound(user: string, end: (id: string) => Promise<void>): () => Promise<void> {
    let before = new Set<string>();
    return async () => {
      await this.#hands.idle(TIDY_EVERY_MS);
      const unknown = new Set(
        (await this.#deps.running(user)).filter(
          (id) => !this.#hands.held.has(id) && !this.kept.has(id),
        ),
      );
      for (const id of unknown) if (before.has(id)) await end(id);
      before = unknown;
    };
  }
}
