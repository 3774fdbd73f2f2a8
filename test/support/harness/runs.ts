const FACTOR = Number(process.env['TEST_RUNS'] ?? 1);
if (!(FACTOR > 0)) throw new Error('TEST_RUNS must be a number over 0, such as 0.1 or 4');

/**
 * Returns how many cases a test tries that makes them up by chance: `usual`, times what the
 * variable TEST_RUNS says.
 */
export const runs = (usual: number): number => Math.ceil(usual * FACTOR);
