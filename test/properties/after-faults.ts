import fc from 'fast-check';
import { checkAsync } from './check.ts';

/** Takes faulty steps, and must recover by itself. */
export interface FaultyWorld<Step> {
  take(step: Step): Promise<void>;
  /** Rejects if it does not recover. */
  settle(): Promise<void>;
  /** Rejects if it does not work as before. */
  goesOn?(): Promise<void>;
  stop?(): Promise<void> | void;
}

export const comesRight = async <Step>(
  steps: fc.Arbitrary<readonly Step[]>,
  start: () => Promise<FaultyWorld<Step>>,
  replay: fc.Parameters<[readonly Step[]]>,
): Promise<void> => {
  const property = fc.asyncProperty(steps, async (taken) => {
    const world = await start();
    try {
      for (const step of taken) await world.take(step);
      await world.settle();
      await world.goesOn?.();
    } finally {
      await world.stop?.();
    }
  });
  await checkAsync(property, replay);
};
