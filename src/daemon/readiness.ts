import type { Assembly } from './assembly/assembly.ts';
import type { Readiness } from '../services/operations.ts';

/**
 * An outage of only the shared state is a warning: reads and deletions still work, and would get no
 * traffic otherwise.
 */
export const readinessOf = (
  { driver, coordination, problems: problemsOf, warnings: warningsOf }: Assembly,
  problemsBeside: readonly (string | undefined)[],
  stopping: boolean,
): Readiness => {
  const { isolation, problems, warnings } = driver.describe();
  const shared = coordination.describe();
  const all = [
    ...(stopping ? ['the daemon is about to stop'] : []),
    ...problems.map((problem) => `sandboxes: ${problem}`),
    ...problemsOf(),
  ];
  const beside = problemsBeside.filter((problem) => problem !== undefined);
  return {
    ready: all.length === 0,
    problems: all,
    warnings: [
      ...warnings,
      ...warningsOf(),
      ...beside,
      ...shared.problems.map((problem) => `${problem}: new work is refused until this is solved`),
      ...shared.warnings,
    ],
    isolation,
  };
};
