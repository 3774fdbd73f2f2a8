import { idOfPodName } from '../../../src/model/identifiers.ts';
import type { Arena } from './arena.ts';
import type { Asked, Disturbance } from './history.ts';
import type { Load } from './load.ts';
import type { Recorder } from './recorder.ts';

export interface ReconcilingDeps {
  readonly arena: Arena;
  readonly recorder: Recorder;
  readonly pools: readonly {
    readonly user: string;
    readonly name: string;
    readonly replicas: number;
  }[];
  readonly others: readonly string[];
  readonly grantMs: number;
  /** In ms, until everything rests. */
  readonly within: number;
}

const LOOK_EVERY_MS = 250;
const ANSWER_MS = 5_000;

/** Before and after the load: pools are full, replicas agree. */
export class Reconciling {
  readonly #deps: ReconcilingDeps;

  #deadline: number;
  readonly #asked = new Set<string>();

  constructor(deps: ReconcilingDeps) {
    this.#deps = deps;
    this.#deadline = performance.now() + deps.within;
  }

  /** Rejects if they are not full in time. */
  async makePools(): Promise<void> {
    const { recorder, pools } = this.#deps;
    for (const { user, name, replicas } of pools) {
      await this.#until(`pool ${name} is made`, async () => {
        const answer = await recorder.send(user, 0, { what: 'create-pool', pool: name, replicas });
        return answer?.status === 201 ? undefined : `${answer?.status}: ${answer?.text}`;
      });
    }
    for (const pool of pools)
      await this.#until(`pool ${pool.name} is full`, () => this.#poolTrouble(pool, 0));
  }

  /** Empty if the replica can't answer. */
  async running(user: string, replica: number): Promise<readonly string[]> {
    try {
      const answer = await this.#deps.arena.contenders[replica]
        ?.client(user)
        .get('/sandboxes?phase=Running&limit=1000', { signal: AbortSignal.timeout(ANSWER_MS) });
      return answer?.status === 200
        ? (answer.json.items ?? []).map((item) => String(item['sandboxId']))
        : [];
    } catch {
      return [];
    }
  }

  /**
   * Reports what is missing at rest. Asks each replica once more about all sandboxes, for the
   * history.
   */
  async unreconciled(load: Load, disturbances: readonly Disturbance[]): Promise<readonly string[]> {
    const { arena, recorder, pools } = this.#deps;
    const found: string[] = [];
    this.#deadline = performance.now() + this.#deps.within;
    const expect = async (what: string, look: () => Promise<string | undefined>): Promise<void> => {
      await this.#until(what, look).catch((error: unknown) => {
        found.push(error instanceof Error ? error.message : String(error));
      });
    };
    const users = [...new Set(pools.map(({ user }) => user))];
    for (const user of [...users, ...this.#deps.others])
      await expect(`nothing of ${user}'s is there but the pools that stay`, () => this.#tidy(user));
    for (const user of users) {
      await expect(`nothing of ${user}'s runs but what is kept`, async () => {
        const others = (await this.running(user, 0)).filter((id) => !load.kept.has(id));
        for (const id of others) await load.end(user, id);
        return others.length === 0 ? undefined : others.join(' ');
      });
    }
    for (const replica of arena.contenders.keys()) {
      for (const pool of pools)
        await expect(`pool ${pool.name} is full, as replica ${replica} shows it`, () =>
          this.#poolTrouble(pool, replica),
        );
    }
    await expect('no record is left over', () => this.#leftovers(load));
    await expect('no approval is left open', () => this.#openApprovals());
    for (const user of users)
      await expect(`the finished sandboxes of ${user} are known`, () =>
        this.#forgotten(user, disturbances),
      );
    for (const [id, of] of load.kept)
      for (const replica of arena.contenders.keys())
        await recorder.send(of.split(' ')[0] ?? '', replica, { what: 'get', id });
    const deleted = recorder.calls.flatMap(({ asked, answer, user }) =>
      asked.what === 'delete' && answer?.status === 200 ? { id: asked.id, user } : [],
    );
    for (const [n, { id, user }] of deleted.slice(-MOST_LOOKED_AT).entries())
      await recorder.send(user, n % arena.contenders.length, { what: 'get', id });
    return found;
  }

  async #poolTrouble(
    { user, name, replicas }: ReconcilingDeps['pools'][number],
    replica: number,
  ): Promise<string | undefined> {
    const answer = await this.#deps.recorder.send(user, replica, { what: 'get-pool', pool: name });
    const { status } = (answer?.json.template ?? {}) as {
      readonly status?: Readonly<Record<string, number>>;
    };
    const { idleReplicas = 0, runningReplicas = 0 } = status ?? {};
    return idleReplicas + runningReplicas === replicas
      ? undefined
      : `${answer?.status} ${JSON.stringify(status)}`;
  }

  /** Asks each once to go. */
  async #tidy(user: string): Promise<string | undefined> {
    const { arena, recorder, pools } = this.#deps;
    const names = async (path: string): Promise<readonly string[]> => {
      const answer = await arena.contenders[0]
        ?.client(user)
        .get(`${path}?limit=1000`, { signal: AbortSignal.timeout(ANSWER_MS) });
      return (answer?.json.items ?? []).map(({ name }) => String(name));
    };
    const remove = async (name: string, asked: Asked): Promise<void> => {
      if (!this.#asked.has(name) && (await recorder.send(user, 0, asked))?.status === 200)
        this.#asked.add(name);
    };
    const envs = await names('/envs');
    for (const env of envs) await remove(env, { what: 'delete-env', env });
    const needed = new Set(pools.filter((pool) => pool.user === user).map(({ name }) => name));
    const others = (await names('/sandboxpools')).filter((name) => !needed.has(name));
    for (const pool of envs.length > 0 ? [] : others)
      await remove(pool, { what: 'delete-pool', pool, force: true });
    return envs.length + others.length === 0 ? undefined : [...envs, ...others].join(' ');
  }

  async #leftovers(load: Load): Promise<string | undefined> {
    const { arena, pools } = this.#deps;
    const records = JSON.parse(
      await arena.controlPlane.kubectl('get', 'sandboxes.sandpool.dev', '-A', '-o', 'json'),
    ) as {
      readonly items: readonly {
        readonly metadata: { readonly name: string };
        readonly spec: { readonly state: string; readonly poolName: string };
      }[];
    };
    const names = new Set(pools.map(({ name }) => name));
    const left = records.items.filter(
      ({ metadata, spec }) =>
        (spec.state === 'claimed' && !load.kept.has(idOfPodName(metadata.name) ?? '')) ||
        !names.has(spec.poolName),
    );
    return left.length === 0
      ? undefined
      : left
          .map(({ metadata, spec }) => `${metadata.name} (${spec.poolName}, ${spec.state})`)
          .join(', ');
  }

  /** Except those that a jumped clock keeps open. */
  async #openApprovals(): Promise<string | undefined> {
    const { items } = JSON.parse(
      await this.#deps.arena.controlPlane.kubectl('get', 'approvals', '-A', '-o', 'json'),
    ) as { readonly items: readonly StoredApproval[] };
    const { grantMs } = this.#deps;
    const open = items.filter(({ spec: { status, use, expiresAt } }) => {
      const isOpen = status === 'pending' || status === 'approved' || use?.settled === false;
      const endsAt = use ? Date.parse(use.at) + grantMs : Date.parse(expiresAt);
      return isOpen && endsAt <= Date.now() + grantMs;
    });
    return open.length === 0
      ? undefined
      : open.map(({ metadata, spec }) => `${metadata.name} (${spec.status})`).join(', ');
  }

  /** Since history was last lost. */
  async #forgotten(
    user: string,
    disturbances: readonly Disturbance[],
  ): Promise<string | undefined> {
    const wholeSince = Math.max(
      -Infinity,
      ...disturbances.filter(({ kind }) => FORGETTING.has(kind)).map(({ to }) => to),
    );
    const byHand = new Set(disturbances.flatMap(({ removed }) => removed));
    const finished = new Set<string>();
    for (let offset = 0, total = 1; offset < total; offset += PAGE) {
      const answer = await this.#deps.arena.contenders[0]
        ?.client(user)
        .get(`/sandboxes?phase=Completed&limit=${PAGE}&offset=${offset}`, {
          signal: AbortSignal.timeout(ANSWER_MS),
        });
      if (answer?.status !== 200) return `${answer?.status}`;
      total = answer.json.total ?? 0;
      for (const item of answer.json.items ?? []) finished.add(String(item['sandboxId']));
    }
    // Its place in history may precede the request to end it.
    const asked = new Map<string, number>();
    const deleted = new Set<string>();
    for (const call of this.#deps.recorder.calls) {
      if (call.asked.what !== 'delete' || call.user !== user) continue;
      asked.set(call.asked.id, Math.min(call.invoked, asked.get(call.asked.id) ?? Infinity));
      if (call.answer?.status === 200) deleted.add(call.asked.id);
    }
    const missing = [...deleted].filter(
      (id) => !finished.has(id) && !byHand.has(id) && (asked.get(id) ?? 0) > wholeSince,
    );
    return missing.length === 0 ? undefined : missing.join(' ');
  }

  async #until(what: string, look: () => Promise<string | undefined>): Promise<void> {
    const deadline = Math.max(this.#deadline, performance.now() + LOOK_EVERY_MS);
    for (;;) {
      const trouble = await look().catch((error: unknown) => String(error));
      if (trouble === undefined) return;
      if (performance.now() > deadline)
        throw new Error(`${what}: not within ${this.#deps.within} ms; ${trouble}`);
      await new Promise((resolve) => {
        setTimeout(resolve, LOOK_EVERY_MS);
      });
    }
  }
}

interface StoredApproval {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly status: string;
    readonly expiresAt: string;
    readonly use?: { readonly at: string; readonly settled: boolean };
  };
}

/** Faults that history does not survive whole. */
const FORGETTING = new Set(['flush', 'Redis failover', 'etcd restored']);
const PAGE = 1_000;
/** Counts from the latest. */
const MOST_LOOKED_AT = 300;
