import { expect } from 'chai';
import * as fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../src/contracts/clock.ts';
import { askedOf, copiedConfigOf, copyWordOf } from '../../src/model/envs/env-copy.ts';
import type { EnvMember } from '../../src/model/envs/env.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { CopyFaults, copiesOnWorlds } from '../support/fakes/copies-on-worlds.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { eventually } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { checkAsync } from './check.ts';

const CLUSTERS = ['w1', 'w2'] as const;
const STEP_MS = 250;
const NAMES = ['a', 'b', 'c'] as const;

type Step =
  | { readonly do: 'add' | 'change' | 'delete' | 'claim'; readonly at: number }
  | { readonly do: 'cut' | 'heal' | 'lose' | 'slow' | 'time'; readonly at: number }
  | { readonly do: 'patch' | 'size'; readonly at: number };

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(
    ...(['add', 'add', 'change', 'delete', 'claim', 'patch', 'size'] as const),
    ...(['cut', 'heal', 'lose', 'lose', 'slow', 'time', 'time'] as const),
  ),
  at: fc.nat(20),
});

const aFleet = async () => {
  const clusters = {
    w1: { world: await anEnvWorld(), faults: new CopyFaults(), claimed: { count: 0 } },
    w2: { world: await anEnvWorld(), faults: new CopyFaults(), claimed: { count: 0 } },
  };
  const hub = await anEnvWorld({
    copies: copiesOnWorlds({
      w1: { operations: clusters.w1.world, faults: clusters.w1.faults },
      w2: { operations: clusters.w2.world, faults: clusters.w2.faults },
    }),
  });
  await hub.made();
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (const { clock } of [hub, clusters.w1.world, clusters.w2.world]) clock.advance(STEP_MS);
      await new Promise((resolve) => void setImmediate(resolve));
    }
  };
  return { hub, clusters, pass };
};

type Fleet = Awaited<ReturnType<typeof aFleet>>;

const take = async ({ hub, clusters, pass }: Fleet, { do: what, at }: Step): Promise<void> => {
  /** Time passes until there is any answer. */
  const refusable = async (work: Promise<unknown>): Promise<void> => {
    let isAnswered = false;
    const answered = work
      .catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error;
      })
      .finally(() => {
        isAnswered = true;
      });
    while (!isAnswered) await pass(100);
    await answered;
  };
  const name = NAMES[at % NAMES.length] ?? 'a';
  const clusterId = CLUSTERS[at % CLUSTERS.length] ?? 'w1';
  const { faults, world, claimed } = clusters[clusterId];
  switch (what) {
    case 'add': {
      const isListed = hub.env()?.members.some((member) => member.name === name);
      return await refusable(
        hub
          .addMember(alice, 'e', { name, clusterId, replicas: 1 + (at % 3), config: {} })
          .catch((error: unknown) => {
            // only members of this env have these names
            if (!isListed && error instanceof Refusal && error.code === 'ALREADY_EXISTS')
              throw new Error('a member was refused for its own pool', { cause: error });
            throw error;
          }),
      );
    }
    case 'change':
      return await refusable(
        hub.updateMember(
          alice,
          { env: 'e', member: name },
          {
            config: { labels: { at: String(at) } },
            ifMatch: undefined,
          },
        ),
      );
    case 'size':
      return await refusable(
        hub.updateMember(
          alice,
          { env: 'e', member: name },
          { config: {}, replicas: at % 4, ifMatch: undefined },
        ),
      );
    case 'delete':
      return await refusable(hub.deleteMember(alice, { env: 'e', member: name }, { force: false }));
    case 'patch':
      return await refusable(
        hub.patchEnv(alice, 'e', { patch: { labels: { at: String(at) } }, ifMatch: undefined }),
      );
    case 'claim':
      await refusable(
        world.claimAs(alice, { poolName: name, idleTimeoutMs: 0 }).then(() => {
          claimed.count += 1;
        }),
      );
      return;
    case 'cut':
    case 'heal':
      faults.isCut = what === 'cut';
      return;
    case 'lose':
      faults.lost = 1 + (at % 2);
      return;
    case 'slow':
      faults.arrives = arrivesIn(hub.clock, 1_000 * (at % 4));
      return;
    case 'time':
      return await pass(1_000 * (1 + at));
  }
};

const arrivesIn = (clock: Clock, ms: number) => (): Promise<void> =>
  new Promise((resolve) => {
    if (ms === 0) resolve();
    else clock.at(clock.now() + ms, resolve);
  });

const bothSides = ({ hub, clusters }: Fleet, clusterId: (typeof CLUSTERS)[number]) => {
  const { world } = clusters[clusterId];
  const env = hub.env();
  const copy = world.env();
  const members = (env?.members ?? []).filter((member) => member.clusterId === clusterId);
  return {
    said:
      env && members.length > 0
        ? {
            word: copyWordOf(env),
            members: byName(members, copiedConfigOf),
            groups: [],
            pools: new Set(members.map((member) => member.name)),
          }
        : { pools: new Set() },
    has: copy
      ? {
          word: copyWordOf({ ...copy, uid: env?.uid ?? '' }),
          members: byName(copy.members, ({ config }) => config),
          groups: copy.groups,
          pools: poolsOf(world),
        }
      : { pools: poolsOf(world) },
  };
};

const poolsOf = ({ pools }: Awaited<ReturnType<typeof anEnvWorld>>): ReadonlySet<string> =>
  new Set([...pools.records.values()].flatMap(({ name, env }) => (env ? [name] : [])));

const byName = (
  members: readonly EnvMember[],
  of: (member: EnvMember) => object,
): Readonly<Record<string, object>> =>
  Object.fromEntries(members.map((member) => [member.name, of(member)]));

const runningIn = ({ supervisor }: Awaited<ReturnType<typeof anEnvWorld>>): number =>
  supervisor.index.counts().byStatus.get('Running') ?? 0;

const agree = (fleet: Fleet): boolean =>
  CLUSTERS.every((clusterId) => {
    const { said, has } = bothSides(fleet, clusterId);
    return isDeepStrictEqual(said, has) && sizesHold(fleet, clusterId);
  });

/** No pool is larger than the manager requested. */
const sizesHold = ({ hub, clusters }: Fleet, clusterId: (typeof CLUSTERS)[number]): boolean =>
  (hub.env()?.members ?? []).every(
    (member) =>
      member.clusterId !== clusterId ||
      (clusters[clusterId].world.pool(member.name)?.replicas ?? 0) <= askedOf(member),
  );

describe('an env over clusters', () => {
  it('keeps a member that its leader created while a slow link still asked for it', async () => {
    const fleet = await aFleet();
    const { hub, clusters, pass } = fleet;
    clusters.w1.faults.arrives = arrivesIn(hub.clock, 3_000);
    let outcome: unknown;
    void hub
      .addMember(alice, 'e', { name: 'a', clusterId: 'w1', replicas: 1, config: {} })
      .catch((error: unknown) => error)
      .then((value) => (outcome = value));
    await eventually(async () => {
      await pass(5_000);
      return outcome !== undefined && agree(fleet);
    }, 'it is made');
    expect(outcome).not.to.be.instanceOf(Error);
    expect(poolsOf(clusters.w1.world)).to.deep.equal(new Set(['a']));
  });

  it('is the same on both sides after the last fault, without a lost running sandbox', async function () {
    await checkAsync(
      fc.asyncProperty(fc.array(step, { maxLength: 25, size: 'max' }), async (steps) => {
        const fleet = await aFleet();
        for (const each of steps) await take(fleet, each);
        for (const { faults } of Object.values(fleet.clusters))
          Object.assign(faults, { isCut: false, lost: 0, arrives: async () => undefined });
        await eventually(async () => {
          await fleet.pass(5_000);
          return agree(fleet);
        }, 'both sides agree');
        for (const { world, claimed } of Object.values(fleet.clusters))
          expect(runningIn(world)).to.equal(claimed.count);
      }),
      { numRuns: runs(40) },
    );
  });
});
