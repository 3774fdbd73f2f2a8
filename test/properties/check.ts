import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { runs } from '../support/harness/runs.ts';

/** A failure prints seed and path; pass them as `replay` to repeat the shrunken case. */
export const check = <T>(property: fc.IProperty<T>, replay: fc.Parameters<T> = {}): void => {
  fc.assert(property, told(replay));
};

export const checkAsync = async <T>(
  property: fc.IAsyncProperty<T>,
  replay: fc.Parameters<T> = {},
): Promise<void> => {
  await fc.assert(property, told(replay));
};

const told = <T>(replay: fc.Parameters<T>): fc.Parameters<T> => {
  const parameters: fc.Parameters<T> = {
    numRuns: runs(1_000),
    seed: randomInt(2 ** 31),
    ...replay,
  };
  process.stdout.write(
    `      fast-check ${JSON.stringify({ seed: parameters.seed, numRuns: parameters.numRuns })}\n`,
  );
  return parameters;
};
