import { expect } from 'chai';
import * as fc from 'fast-check';
import { MemberWatch } from '../../src/actors/env/copy-mirror.ts';
import { askedOf, type CopiedMember } from '../../src/model/envs/env-copy.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { CopyFaults, copiesOnWorlds } from '../support/fakes/copies-on-worlds.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { eventually } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { comesRight } from './after-faults.ts';

const STEP_MS = 250;
const CLUSTERS = ['w1', 'w2'] as const;
type World = Awaited<ReturnType<typeof anEnvWorld>>;

interface Step {
  readonly do: 'cut' | 'heal' | 'lose' | 'lie' | 'resize' | 'claim' | 'least' | 'restart' | 'time';
  readonly at: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom<Step['do']>(
    ...([
      'cut',
      'heal',
      'lose',
      'lie',
      'resize',
      'claim',
      'least',
      'restart',
      'time',
      'time',
    ] as const),
  ),
  at: fc.nat(20),
});

class GroupOverClusters {
  readonly #workers: Readonly<Record<(typeof CLUSTERS)[number], World>>;
  readonly #faults = { w1: new CopyFaults(), w2: new CopyFaults() };
  #hub!: World;
  #least = 2;

  private constructor(w1: World, w2: World) {
    this.#workers = { w1, w2 };
  }

  static async start(): Promise<GroupOverClusters> {
    const group = new GroupOverClusters(await anEnvWorld(), await anEnvWorld());
    await group.#restart();
    const { made, addMember } = group.#hub;
    await made();
    for (const [name, clusterId, config] of [
      ['a', 'w1', { maxReplicas: 8 }],
      ['b', 'w2', { scalingGroup: 'a' }],
    ] as const)
      await addMember(alice, 'e', { name, clusterId, replicas: 1, config });
    await group.#setLeast(2);
    return group;
  }

  async take({ do: what, at }: Step): Promise<void> {
    const clusterId = CLUSTERS[at % 2] ?? 'w1';
    const [faults, world] = [this.#faults[clusterId], this.#workers[clusterId]];
    const name = clusterId === 'w1' ? 'a' : 'b';
    switch (what) {
      case 'cut':
      case 'heal':
        faults.isCut = what === 'cut';
        return;
      case 'lose':
        faults.lost = 1 + (at % 2);
        return;
      case 'lie': {
        const part: Partial<CopiedMember> = { desired: at, running: at, idle: at, pending: at % 3 };
        faults.lie = at % 4 === 0 ? (member) => member : (member) => ({ ...member, ...part });
        return;
      }
      case 'resize': {
        const uid = world.pool(name)?.uid ?? '';
        await world.supervisor.pools.change(uid, (pool) => ({ ...pool, replicas: at }));
        return;
      }
      case 'claim':
        await world.claimAs(alice, { poolName: name, idleTimeoutMs: 0 }).catch(refused);
        return;
      case 'least':
        return await this.#setLeast(1 + (at % 5));
      case 'restart':
        this.#hub.parts.stop();
        return await this.#restart();
      case 'time':
        return await this.#pass(1_000 * (1 + at));
    }
  }

  /** The group is within its bounds. */
  async settle(): Promise<void> {
    for (const faults of Object.values(this.#faults))
      Object.assign(faults, { isCut: false, lost: 0, lie: (member: CopiedMember) => member });
    await eventually(async () => {
      await this.#pass(10_000);
      return this.#isSettled();
    }, 'the group is within its bounds');
  }

  /** The group still follows its owner. */
  async goesOn(): Promise<void> {
    await this.#setLeast(8);
    await eventually(async () => {
      await this.#pass(10_000);
      return this.#sizes().reduce((sum, size) => sum + size, 0) === 8;
    }, 'the group grows');
  }

  stop(): void {
    this.#hub.parts.stop();
  }

  #sizes(): readonly number[] {
    const { w1, w2 } = this.#workers;
    return [w1.pool('a')?.replicas ?? -1, w2.pool('b')?.replicas ?? -1];
  }

  #isSettled(): boolean {
    const sizes = this.#sizes();
    const asked = (this.#hub.env()?.members ?? []).map(askedOf);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    return (
      total >= this.#least && total <= 8 && sizes.every((size, at) => size <= (asked[at] ?? 0))
    );
  }

  async #setLeast(minReplicas: number): Promise<void> {
    this.#least = minReplicas;
    const change = { minReplicas, maxReplicas: 8, ifMatch: undefined };
    await this.#hub.updateGroup(alice, { env: 'e', group: 'a' }, change);
  }

  async #restart(): Promise<void> {
    const { w1, w2 } = this.#workers;
    const copies = copiesOnWorlds({
      w1: { operations: w1, faults: this.#faults.w1 },
      w2: { operations: w2, faults: this.#faults.w2 },
    });
    const envs = (this.#hub as World | undefined)?.envs;
    this.#hub = await anEnvWorld({ copies, envs });
    this.#hub.size();
  }

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (const { clock } of [this.#hub, ...Object.values(this.#workers)]) clock.advance(STEP_MS);
      await new Promise((resolve) => void setImmediate(resolve));
    }
  }
}

const refused = (error: unknown): void => {
  if (!(error instanceof Refusal)) throw error;
};

describe('a group over clusters', () => {
  it('keeps its bounds, and continues sizing, after the last fault', async function () {
    const steps = fc.array(step, { maxLength: 20, size: 'max' });
    await comesRight(steps, () => GroupOverClusters.start(), { numRuns: runs(12) });
  });

  it('recovers soon from wrong reports of another cluster', () => {
    const count = fc.nat(2 ** 31);
    const shown = fc.record({ idle: count, running: count, desired: count, pending: count });
    fc.assert(
      fc.property(fc.array(shown, { maxLength: 40 }), fc.nat(50), (lies, idle) => {
        const watch = new MemberWatch();
        const member = {
          name: 'm',
          config: {},
          state: 'Active',
          current: 0,
          headroom: 0,
          updated: 0,
        };
        let now = 1;
        for (const lie of lies) watch.saw({ ...member, ...lie } as CopiedMember, (now += 2_000));
        const calm = { ...member, idle, running: 3, desired: idle + 3, pending: 0 } as CopiedMember;
        const since = (now += 2_000);
        for (; now <= since + 60_000; now += 2_000) watch.saw(calm, now);
        expect(watch.trouble(now)).to.equal(undefined);
        expect(watch.settled(60_000, now)).to.equal(idle);
        expect(watch.claimedAt).to.be.at.most(since);

        const lacking = { ...calm, desired: idle + 5 };
        watch.saw(lacking, (now += 2_000));
        watch.saw(lacking, (now += 60_000));
        expect(watch.trouble(now)).to.deep.equal({
          reason: 'start failures',
          count: 2,
          since: now,
        });
      }),
      { numRuns: runs(300) },
    );
  });
});
