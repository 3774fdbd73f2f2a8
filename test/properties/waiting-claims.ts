import { expect } from 'chai';
import * as fc from 'fast-check';
import type { Coordination } from '../../src/contracts/coordination.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import type { claimSandbox } from '../../src/actors/claim/claim-sandbox.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { TestClock } from '../support/fakes/test-clock.ts';

export interface WaitingWorld {
  readonly claims: readonly ReturnType<typeof claimSandbox>[];
  readonly coordination: Coordination;
  readonly pool: PoolRecord;
  readonly clock: TestClock;
  grow(replicas: number): Promise<void>;
  /** As each replica sees it. */
  idle(): readonly number[];
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('wait' as const), at: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('leave' as const), at: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('grow' as const),
      at: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('at once' as const), at: fc.nat(1) }) },
);

/** Each claim gets its own instance, the earliest first, and none waits beside an idle one. */
export const servesWaitingClaims = async (
  make: () => Promise<WaitingWorld>,
  numRuns: number,
): Promise<void> => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { claims, coordination, pool, clock, grow, idle } = await make();
      const comesAbout = (look: () => boolean | Promise<boolean>, what: string) =>
        eventually(() => {
          clock.advance(25);
          return look();
        }, what);
      const waitCount = (count: number) =>
        comesAbout(async () => (await coordination.waiting(pool)) === count, `${count} wait`);
      const waiting: { readonly client: AbortController; readonly number: number }[] = [];
      const served: { readonly number: number; readonly id: string }[] = [];
      const failed: unknown[] = [];
      let [number, replicas, spare] = [0, 0, 0];
      const claim = claims[0];
      for (const { kind, at } of steps) {
        if (kind === 'wait') {
          const mine = ++number;
          const client = new AbortController();
          waiting.push({ client, number: mine });
          const asked = (claims[at % claims.length] ?? claim)?.(
            alice,
            { poolName: pool.name, waitMs: 300_000 },
            client.signal,
          );
          asked?.then(
            ({ id }) => {
              served.push({ number: mine, id });
            },
            (error: unknown) => {
              if (!client.signal.aborted) failed.push(error);
            },
          );
          if (spare > 0) {
            spare -= 1;
            waiting.pop();
            await comesAbout(
              () => served.some((each) => each.number === mine),
              'it gets what is idle',
            );
          } else {
            await waitCount(waiting.length);
          }
        } else if (kind === 'leave') {
          const [gone] = waiting.splice(at, 1);
          gone?.client.abort();
          await waitCount(waiting.length);
        } else if (kind === 'grow') {
          for (let n = 0; n < at; n++) {
            await grow(++replicas);
            const first = waiting.shift();
            if (first)
              await comesAbout(
                () => served.some((each) => each.number === first.number),
                `${first.number} is served`,
              );
            else spare += 1;
            await comesAbout(() => idle().every((count) => count === spare), 'the rest is idle');
          }
        } else if (waiting.length > 0) {
          await claim?.(alice, { poolName: pool.name }).then(
            () => {
              failed.push('overtaken');
            },
            () => undefined,
          );
        }
      }
      await waitCount(waiting.length);
      for (const { client } of waiting) client.abort();
      await waitCount(0);

      expect(failed).to.deep.equal([]);
      expect(new Set(served.map(({ id }) => id)).size).to.equal(served.length);
    }),
    { numRuns, endOnFailure: true },
  );
};
