import fc from 'fast-check';
import { checkAsync } from './check.ts';

/** Something that faults befall, step by step, and that is to come right by itself. */
export interface FaultyWorld<Step> {
  take(step: Step): Promise<void>;
  /** Ends all faults. Rejects where not all comes right from there on. */
  settle(): Promise<void>;
  /** Rejects where it does not go on as if nothing had been. */
  goesOn?(): Promise<void>;
  stop?(): Promise<void> | void;
}

/** Holds that whatever steps a world took, it comes right after the last fault, and goes on. */
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
