import { Seals } from '../../../src/k8s/api/seals.ts';

/** Of an installation that never had records without seals. */
export const testSeals = new Seals({
  key: Buffer.alloc(32, 7),
  since: Number.NEGATIVE_INFINITY,
  now: () => 0,
});

/** Of one with another pepper. */
export const othersSeals = new Seals({
  key: Buffer.alloc(32, 8),
  since: Number.NEGATIVE_INFINITY,
  now: () => 0,
});
