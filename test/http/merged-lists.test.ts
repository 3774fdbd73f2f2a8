import { expect } from 'chai';
import * as fc from 'fast-check';
import { Readable } from 'node:stream';
import type { FleetDeps } from '../../src/fleet/routing/fleet-router.ts';
import type { MergedTerms } from '../../src/fleet/routing/merged/gathered.ts';
import { mergedList } from '../../src/fleet/routing/merged/merged-list.ts';
import { mergedStatistics } from '../../src/fleet/routing/merged/merged-sums.ts';
import type { Answer } from '../../src/http/corridor/route.ts';
import { clusterNotFound, Refusal } from '../../src/model/refusals.ts';
import { runs } from '../support/harness/runs.ts';

const OTHERS = ['east', 'south', 'west'] as const;
const CLUSTERS = ['hub', ...OTHERS] as const;
type Cluster = (typeof CLUSTERS)[number];

interface Item {
  readonly sandboxId: string;
  readonly claimedAt: string;
}
type State = 'answers' | 'away' | 'breaks' | 'refuses' | 'lies';
interface Played {
  readonly items: readonly Item[];
  readonly state: State;
}
type Fleet = Readonly<Record<Cluster, Played>>;

const timeOf = (age: number): string => new Date(1_700_000_000_000 - age * 1_000).toISOString();
/** The newest first, as each cluster lists its own. */
const itemsOf = (ages: readonly number[]): readonly Item[] =>
  ages
    .toSorted((one, other) => one - other)
    .map((age, at) => ({ sandboxId: `s${at}`, claimedAt: timeOf(age) }));

const numberIn = (query: URLSearchParams, name: string): number => Number(query.get(name));

/** A manager whose clusters are lists at hand, and what it was asked. */
const aManager = (played: Fleet, lie: object = { items: [], total: -3 }) => {
  const asked: { readonly clusterId: string; readonly query: URLSearchParams }[] = [];
  const pageOf = (clusterId: Cluster, query: URLSearchParams): object => {
    const { items } = played[clusterId];
    const from = numberIn(query, 'offset');
    return { items: items.slice(from, from + numberIn(query, 'limit')), total: items.length };
  };
  const deps = {
    fleet: {
      clusterId: 'hub',
      listOthers: () =>
        OTHERS.map((clusterId) => ({
          clusterId,
          status: played[clusterId].state === 'away' ? 'Disconnected' : 'Connected',
        })),
      wayTo: (clusterId: string) => {
        if (!OTHERS.some((each) => each === clusterId)) throw clusterNotFound();
        return { clusterId };
      },
    },
    passing: {
      share: { work: async <T>(_cluster: string, work: () => T): Promise<T> => work() },
      pass: async ({ way, target }: { way: { clusterId: Cluster }; target: string }) => {
        const query = new URLSearchParams(target.split('?')[1]);
        asked.push({ clusterId: way.clusterId, query });
        const { state } = played[way.clusterId];
        if (state === 'breaks') throw new Error('the link was cut');
        const body = state === 'lies' ? lie : pageOf(way.clusterId, query);
        return Object.assign(Readable.from([Buffer.from(JSON.stringify(body))]), {
          statusCode: state === 'refuses' ? 500 : 200,
          headers: {},
        });
      },
    },
  } as unknown as FleetDeps;
  const warnings: string[] = [];
  const read = async (
    query: Readonly<Record<string, string | number>>,
    merge: (deps: FleetDeps, terms: MergedTerms) => Promise<Answer> = mergedList,
  ) => {
    warnings.length = 0;
    const text = (values: object): URLSearchParams =>
      new URLSearchParams(
        Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]),
      );
    const terms = {
      caller: {},
      context: {
        path: '/sandboxes',
        querystring: text(query).toString(),
        req: {},
        state: { requestId: 'r' },
        append: (_name: string, value: string) => warnings.push(value),
      },
      request: {
        query,
        signal: () => new AbortController().signal,
        room: () => ({ hold: () => undefined }),
      },
      own: async ({ query: changed }: { readonly query: object }) => ({
        status: 200,
        body: pageOf('hub', text(changed)),
      }),
    } as unknown as MergedTerms;
    return (await merge(deps, terms)).body as {
      readonly items: readonly { readonly sandboxId: string; readonly claimedAt: string }[];
      readonly total: number;
      readonly incomplete?: true;
    };
  };
  return { read, asked, warnings };
};

const quiet = (counts: Readonly<Record<Cluster, number>>, state: State = 'answers'): Fleet =>
  Object.fromEntries(
    CLUSTERS.map((clusterId, shift) => [
      clusterId,
      {
        items: itemsOf(Array.from({ length: counts[clusterId] }, (_, at) => 4 * at + shift)),
        state: clusterId === 'west' ? state : 'answers',
      },
    ]),
  ) as unknown as Fleet;

describe('a list over all clusters', () => {
  const played = fc.record({
    ages: fc.array(fc.nat(30), { maxLength: 12 }),
    state: fc.constantFrom<State>(
      'answers',
      'answers',
      'answers',
      'away',
      'breaks',
      'refuses',
      'lies',
    ),
  });
  const fleets = fc.record({ hub: played, east: played, south: played, west: played });

  it('is newest first, in pages without gaps or duplicates, with the sum of all totals', async () => {
    await fc.assert(
      fc.asyncProperty(fleets, fc.integer({ min: 1, max: 20 }), async (made, limit) => {
        const fleet = Object.fromEntries(
          CLUSTERS.map((clusterId) => [
            clusterId,
            {
              items: itemsOf(made[clusterId].ages),
              state: clusterId === 'hub' ? 'answers' : made[clusterId].state,
            },
          ]),
        ) as unknown as Fleet;
        const { read, warnings } = aManager(fleet);
        const heard = CLUSTERS.filter((clusterId) => fleet[clusterId].state === 'answers');
        const silent = OTHERS.filter((clusterId) => !heard.includes(clusterId));
        // of one age in the order of the clusters, each in its own
        const expected = heard
          .flatMap((clusterId) =>
            fleet[clusterId].items.map((item) => ({
              ...item,
              sandboxId: `${clusterId}.${item.sandboxId}`,
            })),
          )
          .map((item, at) => ({ item, at }))
          .toSorted(
            (one, other) =>
              Date.parse(other.item.claimedAt) - Date.parse(one.item.claimedAt) ||
              one.at - other.at,
          )
          .map(({ item }) => item);
        const shown: object[] = [];
        for (let offset = 0; offset <= expected.length; offset += limit) {
          const { items, ...rest } = await read({ limit, offset });
          expect(rest).to.deep.equal({
            total: expected.length,
            limit,
            offset,
            ...(silent.length > 0 ? { incomplete: true } : {}),
          });
          expect(warnings).to.deep.equal(
            silent.length > 0
              ? [`199 - "no answer from the clusters ${silent.toSorted().join(', ')}"`]
              : [],
          );
          shown.push(...items);
        }
        expect(shown).to.deep.equal(expected);
      }),
      { numRuns: runs(60) },
    );
  });

  it('is read from each cluster in steps, only as deep as the page, up to 10,000', async () => {
    const { read, asked } = aManager(quiet({ hub: 0, east: 2_600, south: 1, west: 0 }));
    const { items, total } = await read({ limit: 100, offset: 2_400 });
    expect([items.length, total]).to.deep.equal([100, 2_601]);
    expect(items.at(-1)?.claimedAt).to.equal(timeOf(4 * 2_498 + 1));
    const steps = asked
      .filter(({ clusterId }) => clusterId === 'east')
      .map(({ query }) => [numberIn(query, 'offset'), numberIn(query, 'limit')]);
    expect(steps).to.deep.equal([
      [0, 1_000],
      [1_000, 1_000],
      [2_000, 499], // one of south's is before these
    ]);
    expect(asked.filter(({ clusterId }) => clusterId !== 'east')).to.have.length(2);

    asked.length = 0;
    const refusal = await read({ limit: 1, offset: 10_000 }).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(Refusal).with.property('code', 'INVALID_ARGUMENT');
    expect(asked).to.deep.equal([]);
  });

  it('omits a cluster with an invalid list', async () => {
    const many = Array.from({ length: 1_001 }, () => ({}));
    for (const lie of [
      { items: [], total: -1 },
      { items: [], total: 0.5 },
      { items: [], total: '7' },
      { items: many, total: 1_001 },
      { items: { length: 1 }, total: 1 },
      { total: 1 },
      { items: [{}, {}], total: 1 },
      { items: [null], total: 1 },
      { items: ['x'], total: 1 },
      { items: [[]], total: 1 },
    ]) {
      const { read } = aManager(quiet({ hub: 2, east: 1, south: 1, west: 9 }, 'lies'), lie);
      const { items, ...rest } = await read({ limit: 50, offset: 0 });
      expect(rest, JSON.stringify(lie).slice(0, 40)).to.include({ total: 4, incomplete: true });
      expect(items).to.have.length(4);
    }
  });

  it('ends even if a cluster claims to have more than it returns', async () => {
    const lie = { items: [{ sandboxId: 'x', claimedAt: timeOf(0) }], total: 1_000_000 };
    const { read, asked } = aManager(quiet({ hub: 1, east: 0, south: 0, west: 0 }, 'lies'), lie);
    const { items } = await read({ limit: 500, offset: 5_000 });
    expect(items).to.deep.equal([]);
    expect(asked.filter(({ clusterId }) => clusterId === 'west')).to.have.length(1);
  });

  it('of counts omits a cluster with malformed ones, and fails with one that is named', async () => {
    const zero = { total: 0, byStatus: {}, byNamespace: {} };
    for (const lie of [
      { statistics: { ...zero, total: 1.5 } },
      { statistics: { ...zero, byStatus: { Running: -1 } } },
      { statistics: { ...zero, byNamespace: 7 } },
      {},
    ]) {
      const { read } = aManager(quiet({ hub: 0, east: 0, south: 0, west: 0 }, 'lies'), lie);
      const failed = await read({ clusterID: 'west' }, mergedStatistics).catch(
        (error: unknown) => error,
      );
      expect(failed, JSON.stringify(lie)).to.be.instanceOf(Error);
    }
  });
});
