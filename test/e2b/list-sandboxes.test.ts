import { expect } from 'chai';
import { listRunning } from '../../src/http/e2b/control/list-sandboxes.ts';
import { tokenOf, ListQuery } from '../../src/http/e2b/control/schema.ts';
import type { Operations } from '../../src/services/operations.ts';
import type { SandboxView } from '../../src/actors/views.ts';
import { caller } from './services/a-served-sandbox.ts';

const idOf = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;

/** Claimed one after another; every hundredth of the first 2,000 is paused. */
const aSandbox = (n: number): SandboxView =>
  ({
    id: idOf(n),
    claimedAt: 1_000 + n,
    paused: n < 2_000 && n % 100 === 0,
  }) as unknown as SandboxView;

describe('a list of many sandboxes', () => {
  /** Newest first. `meanwhile` is called before each read. */
  const pages = async (
    views: SandboxView[],
    query: Readonly<Record<string, string>>,
    meanwhile: (read: number) => void = () => {},
  ): Promise<readonly (readonly string[])[]> => {
    let reads = 0;
    const operations: Pick<Operations, 'listSandboxes'> = {
      listSandboxes: async (_caller, _filter, { offset, limit }) => {
        meanwhile((reads += 1));
        const items = views.slice(offset, offset + limit);
        return { items, total: views.length, offset, limit };
      },
    };
    const seen: string[][] = [];
    let nextToken: string | undefined;
    do {
      const asked = ListQuery.parse({ ...query, ...(nextToken ? { nextToken } : {}) });
      const { items, next } = await listRunning(operations, caller, asked);
      seen.push(items.map(({ id }) => id));
      nextToken = next && tokenOf(next);
    } while (nextToken !== undefined && seen.length < 99);
    return seen;
  };
  const many = (count: number): SandboxView[] =>
    Array.from({ length: count }, (_, n) => aSandbox(count - n));

  it('continues beyond the limit of sandboxes read for one page', async () => {
    const seen = await pages(many(25_000), { state: 'paused', limit: '15' });

    expect(seen.flat()).to.deep.equal(Array.from({ length: 19 }, (_, n) => idOf(1_900 - n * 100)));
    expect(seen[0]).to.deep.equal([]);
  });

  it('shows each once, with none missing, while others come and go between reads', async () => {
    const views = many(3_000);
    const stay = views.map(({ id }) => id).filter((_, at) => at % 10 !== 0);
    let came = 3_000;
    const seen = await pages(views, { limit: '100' }, (read) => {
      if (read % 2 === 0) views.unshift(aSandbox((came += 1)), aSandbox((came += 1)));
      else
        for (const id of [idOf(3_000 - read * 10), idOf(3_010 - read * 10)]) {
          const at = views.findIndex((view) => view.id === id && !stay.includes(id));
          if (at >= 0) views.splice(at, 1);
        }
    });

    const shown = seen.flat();
    expect(new Set(shown).size).to.equal(shown.length);
    expect(shown).to.include.members(stay);
  });

  it('starts with the oldest on request', async () => {
    const seen = await pages(many(450), { limit: '100', order: 'asc' });

    expect(seen.map(({ length }) => length)).to.deep.equal([100, 100, 100, 100, 50]);
    expect(seen.flat()).to.deep.equal(Array.from({ length: 450 }, (_, n) => idOf(n + 1)));
  });

  for (const burst of [2, 150])
    it(`shows the oldest first, each once, while ${burst} arrive between reads and some leave`, async () => {
      const views = many(1_500);
      const stay = views.map(({ id }) => id).filter((_, at) => at % 10 !== 0);
      let came = 1_500;
      const seen = await pages(views, { limit: '100', order: 'asc' }, (read) => {
        if (read < 40 && read % 2 === 0)
          for (let n = 0; n < burst; n += 1) views.unshift(aSandbox((came += 1)));
        const at = views.findLastIndex(({ id }) => !stay.includes(id));
        if (read % 3 === 0 && at >= 0) views.splice(at, 1);
      });

      const shown = seen.flat();
      expect(shown).to.deep.equal([...shown].sort());
      expect(new Set(shown).size).to.equal(shown.length);
      expect(shown).to.include.members(stay);
    });
});
