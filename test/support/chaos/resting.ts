import { SHARDS } from '../../../src/model/shards.ts';
import type { Dice } from '../builders/hostile-values.ts';
import type { HttpAnswer } from '../harness/http-client.ts';
import type { Arena } from './arena.ts';
import { calmOf } from './calm.ts';
import { pause } from './hands.ts';
import type { Look, Moment, Rest, Usage } from './history.ts';
import type { Load } from './load.ts';
import type { Recorder } from './recorder.ts';

export interface RestingDeps {
  readonly arena: Pick<Arena, 'contenders' | 'admin'>;
  readonly recorder: Recorder;
  readonly load: Pick<Load, 'pause' | 'resume' | 'end'>;
  readonly now: () => Moment;
  readonly dice: Dice;
  readonly users: readonly string[];
  readonly pools: readonly { readonly user: string; readonly name: string }[];
  readonly quota: number;
}

/** Clients must finish their rounds by then; else there is no rest. */
const PAUSE_MS = 60_000;
const LOOK_EVERY_MS = 250;
const ANSWER_MS = 3_000;
/** Earlier, an ending lease may be unseen. */
const LEAST_CALM_MS = 4_500;
/** More than any promise about a brief rest permits. */
const BRIEF_MS = 16_000;
/** As BRIEF_MS, with usage. */
const WHOLE_MS = 66_000;
const REFILL_MS = 15_000;

/** Looks at the replicas until all is well, or as long as the promises permit. */
export class Resting {
  readonly rests: Rest[] = [];
  readonly #deps: RestingDeps;

  constructor(deps: RestingDeps) {
    this.#deps = deps;
  }

  /** A whole rest also waits for usage, and claims every idle instance. */
  async rest(kind: 'brief' | 'whole'): Promise<void> {
    const { load, now } = this.#deps;
    const isPaused = await load.pause(PAUSE_MS);
    try {
      if (!isPaused) return; // other promises judge what clients wait for
      const from = now();
      const looks: Look[] = [];
      await this.#watch(looks, kind);
      if (kind === 'whole')
        for (const replica of this.#deps.arena.contenders.keys()) await this.#claimAll(replica);
      this.rests.push({ from, until: now(), looks });
    } finally {
      load.resume();
    }
  }

  async #watch(looks: Look[], kind: 'brief' | 'whole'): Promise<void> {
    const most = kind === 'brief' ? BRIEF_MS : WHOLE_MS;
    for (;;) {
      const pools = await this.#pools(looks.length);
      const look = await this.#look();
      looks.push(look);
      const calm = calmOf({ looks });
      const isWell =
        isLed(look) && isFull(pools) && (kind === 'brief' || this.#isSettled(look, pools));
      if (calm >= most || (isWell && calm >= LEAST_CALM_MS)) return;
      await pause(LOOK_EVERY_MS);
    }
  }

  async #look(): Promise<Look> {
    const { arena, users, now, dice } = this.#deps;
    const asked = now();
    const led = await Promise.all([...arena.contenders.keys()].map((n) => this.#led(n)));
    const told = await Promise.all(
      users.map((user) => this.#usage(dice.below(arena.contenders.length), user)),
    );
    const usage = Object.fromEntries(
      users.flatMap((user, n) => (told[n] ? [[user, told[n]]] : [])),
    );
    return { asked, answered: now(), led, usage };
  }

  async #led(replica: number): Promise<readonly number[] | undefined> {
    const answer = await this.#ask(replica, '/debug/shards');
    const { shards } =
      parsed<{ readonly shards: readonly { readonly shard: number; readonly leading: boolean }[] }>(
        answer,
      ) ?? {};
    return shards?.flatMap(({ shard, leading }) => (leading ? [shard] : []));
  }

  async #usage(replica: number, user: string): Promise<Usage | undefined> {
    const [, team, name] = user.split('/');
    const answer = await this.#ask(replica, `/admin/quotas/${team}/${name}`);
    const { items } =
      parsed<{
        readonly items: readonly { readonly resource: keyof Usage; readonly used: number }[];
      }>(answer) ?? {};
    if (!items) return undefined;
    const used = (resource: keyof Usage): number =>
      items.find((item) => item.resource === resource)?.used ?? 0;
    return { sandboxes: used('sandboxes'), pools: used('pools'), replicas: used('replicas') };
  }

  /** All users' pools, by changing replicas. */
  async #pools(turn: number): Promise<readonly Pool[]> {
    const answer = await this.#ask(
      turn % this.#deps.arena.contenders.length,
      '/sandboxpools?all&limit=1000',
    );
    return parsed<{ readonly items: readonly Pool[] }>(answer)?.items ?? [];
  }

  #isSettled({ usage }: Look, pools: readonly Pool[]): boolean {
    return this.#deps.users.every((user) => {
      const [, team, name] = user.split('/');
      const own = pools.filter((pool) => pool.team === team && pool.user === name);
      const sum = (of: (pool: Pool) => number): number =>
        own.reduce((all, pool) => all + of(pool), 0);
      const told = usage[user];
      return (
        told?.pools === own.length &&
        told.replicas === sum(({ spec }) => spec.replicas) &&
        told.sandboxes === sum(({ status }) => status.runningReplicas)
      );
    });
  }

  async #claimAll(replica: number): Promise<void> {
    const { recorder, load, pools } = this.#deps;
    const there = await this.#pools(replica);
    for (const { user, name } of pools) {
      const [, team, owner] = user.split('/');
      const own = there.filter((pool) => pool.team === team && pool.user === owner);
      const running = own.reduce((all, { status }) => all + status.runningReplicas, 0);
      const count = Math.min(
        own.find((pool) => pool.name === name)?.status.idleReplicas ?? 0,
        this.#deps.quota - running,
      );
      const claims = Array.from({ length: Math.max(0, count) }, () =>
        recorder.send(user, replica, { what: 'claim', pool: name }),
      );
      const ids = (await Promise.all(claims)).flatMap(
        (answer) => answer?.json.sandbox?.['sandboxId'] ?? [],
      );
      await Promise.all(ids.map((id) => load.end(user, id)));
    }
    const deadline = this.#deps.now() + REFILL_MS;
    for (let turn = 0; this.#deps.now() < deadline && !isFull(await this.#pools(turn)); turn += 1)
      await pause(LOOK_EVERY_MS);
  }

  async #ask(replica: number, path: string): Promise<HttpAnswer | undefined> {
    try {
      return await this.#deps.arena
        .admin(replica)
        .get(path, { signal: AbortSignal.timeout(ANSWER_MS) });
    } catch {
      return undefined;
    }
  }
}

interface Pool {
  readonly name: string;
  readonly team: string;
  readonly user: string;
  readonly spec: { readonly replicas: number };
  readonly status: {
    readonly idleReplicas: number;
    readonly runningReplicas: number;
    readonly phase: string;
  };
}

const parsed = <T>(answer: HttpAnswer | undefined): T | undefined =>
  answer?.status === 200 ? (JSON.parse(answer.text) as T) : undefined;

const isLed = ({ led }: Look): boolean =>
  Array.from(
    { length: SHARDS },
    (_, shard) => led.filter((shards) => shards?.includes(shard)).length,
  ).every((leaders) => leaders === 1);

const isFull = (pools: readonly Pool[]): boolean =>
  pools.every(
    ({ spec, status }) =>
      status.phase !== 'Deleting' && status.idleReplicas + status.runningReplicas >= spec.replicas,
  );
