import { expect } from 'chai';
import fc from 'fast-check';
import { Readable } from 'node:stream';
import { mergedList } from '../../src/fleet/routing/merged/merged-list.ts';
import type { FleetDeps } from '../../src/fleet/routing/fleet-router.ts';
import type { MergedTerms } from '../../src/fleet/routing/merged/gathered.ts';
import { answersShareMet } from '../../src/model/limit-refusals.ts';
import { LoopShare } from '../../src/lib/streams/json-reader.ts';
import { runs } from '../support/harness/runs.ts';

interface Item {
  readonly sandboxId: string;
  readonly claimedAt: string;
}
interface Page {
  readonly items: readonly Item[];
  readonly total: number;
  readonly incomplete?: true;
}

/** The lists of `hub` and so many workers; each item says its age. */
class Lists {
  readonly #ages: readonly (readonly number[])[];
  readonly warnings: string[] = [];
  /** How much each request asked for. */
  readonly limits: number[] = [];
  /** Answers nothing but the first so many requests. */
  answers = Infinity;
  /** Answers nothing where it is asked for more than this. */
  readonly most = new Map<string, number>();
  /** Answers this in place of its list. */
  readonly instead = new Map<string, string>();
  /** Is told how many bytes a request holds. */
  hold: (bytes: number) => void = () => undefined;

  constructor(ages: readonly (readonly number[])[]) {
    this.#ages = ages;
  }

  get all(): readonly Item[] {
    return this.#ages
      .flatMap((_, at) => this.#itemsOf(at).map((item) => ({ at, item })))
      .map(({ at, item }) => ({ ...item, sandboxId: `${nameOf(at)}.${item.sandboxId}` }))
      .sort((a, b) => (a.claimedAt > b.claimedAt ? -1 : a.claimedAt < b.claimedAt ? 1 : 0));
  }

  async page(limit: number, offset: number): Promise<Page> {
    const names = this.#ages.map((_, at) => nameOf(at)).slice(1);
    const deps = {
      fleet: {
        clusterId: 'hub',
        listOthers: () => names.map((clusterId) => ({ clusterId, status: 'Connected' })),
        wayTo: (clusterId: string) => ({ clusterId }),
      },
      passing: {
        share: new LoopShare(),
        pass: async ({ way, target }: { way: { clusterId: string }; target: string }) => {
          if (this.limits.length >= this.answers) throw new Error('it does not answer');
          const query = new URL(target, 'http://w').searchParams;
          if (Number(query.get('limit')) > (this.most.get(way.clusterId) ?? Infinity))
            throw new Error('it does not answer');
          const text =
            this.instead.get(way.clusterId) ??
            JSON.stringify(
              this.#pageOf(names.indexOf(way.clusterId) + 1, {
                limit: Number(query.get('limit')),
                offset: Number(query.get('offset')),
              }),
            );
          return Object.assign(Readable.from([Buffer.from(text)]), { statusCode: 200 });
        },
      },
    } as unknown as FleetDeps;
    const terms = {
      context: {
        path: '/sandboxes',
        querystring: '',
        state: {},
        append: (_name: string, value: string) => void this.warnings.push(value),
      },
      request: {
        query: { limit, offset },
        signal: () => new AbortController().signal,
        room: () => ({ hold: (bytes: number) => this.hold(bytes) }),
      },
      own: ({ query }: { query: { limit: number; offset: number } }) => ({
        status: 200,
        body: this.#pageOf(0, query),
      }),
    } as unknown as MergedTerms;
    return (await mergedList(deps, terms)).body as Page;
  }

  #itemsOf(at: number): readonly Item[] {
    return (this.#ages[at] ?? []).map((age, place) => ({
      sandboxId: `${place}`,
      claimedAt: new Date(1e12 - age * 1_000).toISOString(),
    }));
  }

  #pageOf(at: number, { limit, offset }: { limit: number; offset: number }): Page {
    if (at > 0) this.limits.push(limit);
    const items = this.#itemsOf(at);
    return { items: items.slice(offset, offset + limit), total: items.length };
  }
}

const nameOf = (at: number): string => (at === 0 ? 'hub' : `w${String(at).padStart(2, '0')}`);

describe('a list over many clusters', () => {
  it('has pages that equal a slice of the whole, wherever the newest are', () => {
    const list = fc
      .array(fc.nat(60), { maxLength: 40 })
      .map((ages) => ages.toSorted((a, b) => a - b));
    return fc.assert(
      fc.asyncProperty(
        fc.array(list, { minLength: 1, maxLength: 14 }),
        fc.nat(60),
        fc.integer({ min: 1, max: 30 }),
        async (ages, offset, limit) => {
          const lists = new Lists(ages);
          const { items, total, incomplete } = await lists.page(limit, offset);
          expect(items).to.deep.equal(lists.all.slice(offset, offset + limit));
          expect([total, incomplete]).to.deep.equal([lists.all.length, undefined]);
        },
      ),
      { numRuns: runs(1_000) },
    );
  });

  it('requests few items first, and more of the cluster with the newest', async () => {
    const even = new Lists(Array.from({ length: 50 }, () => [0, 1, 2, 3, 4, 5, 6, 7]));
    await even.page(20, 0);
    expect(even.limits).to.deep.equal(Array.from({ length: 49 }, () => 4));
    const ages = Array.from({ length: 100 }, (_, age) => age);
    const one = new Lists([
      ages.map((age) => age + 1_000),
      ages,
      ...Array.from({ length: 48 }, () => ages.map((age) => age + 1_000)),
    ]);
    await one.page(20, 0);
    expect(one.limits).to.deep.equal([...Array.from({ length: 49 }, () => 4), 20]);
  });

  it('reads from each cluster only up to the end of the page, at any depth', async () => {
    const third = (from: number): readonly number[] =>
      Array.from({ length: 5_000 }, (_, at) => from + at * 3);
    const lists = new Lists([third(0), third(1), third(2)]);
    const { items, total } = await lists.page(10, 7_000);
    expect(items).to.deep.equal(lists.all.slice(7_000, 7_010));
    expect(total).to.equal(15_000);
    expect(lists.limits.length).to.be.lessThan(9); // 1,000 at a time, of two others
  });

  it('keeps the items of a cluster that becomes silent at a second request', async () => {
    const ages = (from: number, count: number): readonly number[] =>
      Array.from({ length: count }, (_, at) => from + at);
    const old = Array.from({ length: 7 }, (_, at) => ages(10_000 + at * 100, 10));
    const lists = new Lists([[], ages(0, 20), ages(100, 20), ages(50, 7), ...old]);
    lists.most.set('w01', 10);
    const { items, total, incomplete } = await lists.page(20, 0);
    const of = (name: string) => lists.all.filter((each) => each.sandboxId.startsWith(name));
    const said = [...of('w01.').slice(0, 7), ...of('w03.'), ...of('w02.')];

    expect(items).to.deep.equal(said.slice(0, 20));
    expect([total, incomplete]).to.deep.equal([lists.all.length, true]);
  });

  it('reports missing clusters once, including those silent at a second request', async () => {
    const ages = Array.from({ length: 100 }, (_, age) => age);
    const lists = new Lists([[], ages, ...Array.from({ length: 10 }, () => [5_000])]);
    lists.answers = 11;
    const { items, total, incomplete } = await lists.page(50, 0);
    expect([items.length, total, incomplete]).to.deep.equal([22, 110, true]);
    expect(lists.warnings).to.deep.equal(['199 - "no answer from the clusters w01"']);
  });

  it('accepts items of one list in its order, and no more than requested', async () => {
    const lists = new Lists([[1, 3], [], [2]]);
    const item = (sandboxId: string, age: number): object => ({
      ...{ sandboxId, claimedAt: new Date(1e12 - age * 1_000).toISOString() },
    });
    lists.instead.set('w01', JSON.stringify({ items: [item('a', 9), item('b', 0)], total: 2 }));
    const { items } = await lists.page(10, 0);
    expect(items.map(({ sandboxId }) => sandboxId)).to.deep.equal(
      ['hub.0', 'w02.0', 'hub.1', 'w01.a', 'w01.b'], // no younger than what stands before it
    );
    const { incomplete } = await lists.page(1, 0);
    expect(incomplete).to.equal(true);
  });

  it('counts its memory over all clusters, and omits a cluster with too long items', async () => {
    const long = (bytes: number): string =>
      JSON.stringify({ items: [{ sandboxId: 'x'.repeat(bytes) }], total: 1 });
    const lists = new Lists([[1], [2], [3]]);
    let held = 0;
    lists.hold = (bytes) => (held = bytes);
    lists.instead.set('w01', long(80 << 10));
    lists.instead.set('w02', long(80 << 10));
    expect(await lists.page(1, 0)).not.to.have.property('incomplete');
    expect(held).to.be.greaterThan(160 << 10);

    lists.instead.set('w02', long(100 << 10)); // more than one item may be, and all else
    const { total, incomplete } = await lists.page(1, 0);
    expect([total, incomplete]).to.deep.equal([2, true]);
  });

  it('is refused without memory, whichever cluster used it', async () => {
    const lists = new Lists([[1], [2], [3]]);
    lists.instead.set('w01', JSON.stringify({ items: [{ x: 'x'.repeat(80 << 10) }], total: 1 }));
    const refusal = answersShareMet();
    lists.hold = () => {
      throw refusal;
    };
    expect(await lists.page(1, 0).catch((error: unknown) => error)).to.equal(refusal);
  });
});
