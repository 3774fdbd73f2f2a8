import { writeFileSync } from 'node:fs';
import { config } from 'chai';
import mocha from 'mocha';

/** What one mocha process found; written once, at its orderly end. A skip without a cause counts as failed. */
export interface SuiteResult {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
}

const { EVENT_RUN_END, EVENT_TEST_PENDING } = mocha.Runner.constants;

/** A list that should be empty is shown with what it holds. */
config.truncateThreshold = 1_000;

/** Mocha's `spec` listing with the cause below each skip. Writes a SuiteResult to the file of the option `result`. */
export default class TestReporter extends mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const skipped: string[] = [];
    const causeless: string[] = [];
    runner.on(EVENT_TEST_PENDING, (test) => {
      const cause = causeOf(test);
      mocha.reporters.Base.consoleLog(`      skipped: ${cause ?? 'no cause given (use skipBecause)'}`);
      if (cause === undefined) causeless.push(`${test.fullTitle()} (skipped without a cause)`);
      else skipped.push(`${test.fullTitle()}: ${cause}`);
    });
    runner.on(EVENT_RUN_END, () => {
      const file: unknown = options.reporterOptions?.result;
      if (typeof file !== 'string') return;
      const failed = this.failures.map((test) => `${test.fullTitle()}: ${firstLineOf(test.err)}`);
      const result: SuiteResult = { passed: this.stats.passes, failed: [...failed, ...causeless], skipped };
      writeFileSync(file, JSON.stringify(result));
    });
  }
}

/** Enough to know the cause where the last lines of a run are all that there is. */
const firstLineOf = (error: Error | undefined): string => (error?.message.split('\n', 1)[0] ?? 'no error').slice(0, 600);

/** As test/support/skip-because.ts leaves it on the test or on a suite around it. */
const causeOf = (test: Mocha.Test): string | undefined => {
  for (let node: (Mocha.Test | Mocha.Suite) & { skipCause?: string } | undefined = test; node; node = node.parent) {
    if (node.skipCause !== undefined) return node.skipCause;
  }
  return undefined;
};
