const FACTOR = Number(process.env['TEST_RUNS'] ?? 1);
if (!(FACTOR > 0)) throw new Error('TEST_RUNS must be a number over 0, such as 0.1 or 4');

/** Number of random cases: `usual` times TEST_RUNS. */
export const runs = (usual: number): number => Math.ceil(usual * FACTOR);
