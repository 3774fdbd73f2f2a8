import { shardOf } from '../../../src/model/shards.ts';
import type { Dice } from '../builders/hostile-values.ts';
import type { Arena } from './arena.ts';
import { insist } from './faults/insist.ts';
import type { Recorder } from './recorder.ts';

export interface FilledDeps {
  readonly arena: Pick<Arena, 'contenders' | 'admin' | 'controlPlane'>;
  readonly recorder: Recorder;
  readonly user: string;
  readonly least: number;
  readonly most: number;
}

const POOL = 'delta';
const ANSWER_MS = 3_000;

export class Filled {
  readonly #deps: FilledDeps;
  #isLarge = false;

  constructor(deps: FilledDeps) {
    this.#deps = deps;
  }

  async make(): Promise<void> {
    await this.#insist({ what: 'create-pool', pool: POOL, replicas: this.#deps.least });
  }

  /** Resolves once it is acknowledged. */
  async resize(dice: Dice): Promise<void> {
    const { least, most } = this.#deps;
    this.#isLarge = !this.#isLarge;
    const replicas = this.#isLarge ? most - dice.below(4) : least;
    await this.#insist({ what: 'resize-pool', pool: POOL, replicas });
  }

  async leader(): Promise<number> {
    const { arena, user } = this.#deps;
    const uidOf = async (field: string): Promise<string> =>
      await arena.controlPlane.kubectl(
        'get',
        'sandboxpool',
        POOL,
        '-n',
        user.split('/')[0] ?? '',
        '-o',
        `jsonpath={${field}}`,
      );
    const uid = await insist(
      async () => (await uidOf('.status.resolved.uid')) || (await uidOf('.resolved.uid')),
    );
    return await insist(async () => {
      for (const n of arena.contenders.keys()) if (await this.#leads(n, shardOf(uid))) return n;
      throw new Error(`nobody leads the shard of ${POOL}`);
    });
  }

  async #leads(replica: number, shard: number): Promise<boolean> {
    const answer = await this.#deps.arena
      .admin(replica)
      .get('/debug/shards', { signal: AbortSignal.timeout(ANSWER_MS) })
      .catch(() => undefined);
    if (answer?.status !== 200) return false;
    const { shards } = JSON.parse(answer.text) as {
      readonly shards: readonly { readonly shard: number; readonly leading: boolean }[];
    };
    return shards.some((one) => one.shard === shard && one.leading);
  }

  async #insist(asked: Parameters<Recorder['send']>[2]): Promise<void> {
    const { arena, recorder, user } = this.#deps;
    let turn = 0;
    await insist(async () => {
      const answer = await recorder.send(user, turn++ % arena.contenders.length, asked);
      if (answer?.status !== 201 && answer?.status !== 200 && answer?.status !== 409)
        throw new Error(`${asked.what} of ${POOL}: ${answer?.status} ${answer?.text}`);
    });
  }
}
