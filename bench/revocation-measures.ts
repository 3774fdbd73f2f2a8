import type { Bench } from './figure.ts';
import type { Measure } from './measure.ts';
import { revokeOnce, type Revocation, type RevocationTerms } from './revocation.ts';

/** Keys that are revoked a round, each daemon being asked in turn; the slowest counts. */
const KEYS_A_ROUND = 6;

export const revocationMeasures = async (
  bench: Bench,
  terms: Omit<RevocationTerms, 'at'>,
): Promise<readonly Measure[]> => {
  const rounds: Revocation[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    const all: Revocation[] = [];
    for (let n = 0; n < KEYS_A_ROUND; n += 1) all.push(await revokeOnce({ ...terms, at: n }));
    rounds.push({
      refusedMs: Math.max(...all.map(({ refusedMs }) => refusedMs)),
      closedMs: Math.max(...all.map(({ closedMs }) => closedMs)),
    });
    bench.say(
      all
        .map(
          ({ refusedMs, closedMs }) =>
            `refused after ${refusedMs.toFixed(0)} ms, terminals closed after ${closedMs.toFixed(0)} ms`,
        )
        .join('; '),
    );
  }
  const row = (name: string, of: (revocation: Revocation) => number): Measure => ({
    name,
    unit: 's',
    better: 'less',
    ours: rounds.map((each) => of(each) / 1_000),
    reach: 1,
    beyond: 0.2,
  });
  return [
    row('key revoked: refused on every replica', ({ refusedMs }) => refusedMs),
    row('the same: its terminals closed', ({ closedMs }) => closedMs),
  ];
};
