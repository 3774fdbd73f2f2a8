import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { ChildProcess } from 'node:child_process';
import { config } from 'chai';
import mocha from 'mocha';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { forgetAnswers, lastAnswers } from '../local-cluster/last-answers.ts';
import { beginFile, beginTest, lastLines } from '../local-cluster/started-processes.ts';
import { longTimers } from './test-process.ts';
import { processorSeconds } from './test-usage.ts';

/** In seconds. */
export interface FileTime {
  readonly file: string;
  readonly clock: number;
  /** With its waited-for children. */
  readonly processor: number;
}

/**
 * Written at an orderly end, and again with `open` if the process lives on. A skip without a cause
 * counts as failed.
 */
export interface SuiteResult {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
  readonly files: readonly FileTime[];
  /** Keeps the process alive after its last test. */
  readonly open?: readonly string[];
}

/** Less than the run waits for the end of a process. */
const LOOK_AFTER_MS = 6_000;

const {
  EVENT_RUN_END,
  EVENT_SUITE_BEGIN,
  EVENT_SUITE_END,
  EVENT_TEST_BEGIN,
  EVENT_TEST_FAIL,
  EVENT_TEST_PENDING,
} = mocha.Runner.constants;

/** For each process of a failed test. */
const LAST_LINES = 20;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** For lists that should be empty. */
config.truncateThreshold = 1_000;

/**
 * mocha's `spec` listing with causes of skips and failures. Option `listing=failures`: only
 * failures, and how to repeat each. Option `result`: a file for the SuiteResult.
 */
export default class TestReporter extends mocha.reporters.Base {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const terms = options.reporterOptions ?? {};
    if (terms.listing !== 'failures') new mocha.reporters.Spec(runner, options);
    const skipped: string[] = [];
    const causeless: string[] = [];
    runner.on(EVENT_TEST_PENDING, (test) => {
      const cause = causeOf(test);
      say(`      skipped: ${cause ?? 'no cause given (use skipBecause)'}`);
      if (cause === undefined) causeless.push(`${test.fullTitle()} (skipped without a cause)`);
      else skipped.push(`${test.fullTitle()}: ${cause}`);
    });
    // A run may be cut before its end.
    runner.on(EVENT_TEST_FAIL, (test, error: Error) => {
      say(`      ${test.fullTitle()}\n      ${firstLinesOf(error)}\n      ${runAgain(test)}`);
      for (const line of [...lastAnswers(), ...lastLines(LAST_LINES)]) say(`        ${line}`);
    });
    runner.on(EVENT_SUITE_BEGIN, ({ file }) => beginFile(file));
    runner.on(EVENT_TEST_BEGIN, () => {
      beginTest();
      forgetAnswers();
    });
    const files = timesOf(runner);
    runner.on(EVENT_RUN_END, () => {
      if (terms.listing === 'failures' && this.failures.length > 0) this.epilogue();
      const file: unknown = terms.result;
      if (typeof file !== 'string') return;
      const failed = this.failures.map((test) => `${test.fullTitle()}: ${firstLinesOf(test.err)}`);
      const result: SuiteResult = {
        passed: this.stats.passes,
        failed: [...failed, ...causeless],
        skipped,
        files: files(),
      };
      writeFileSync(file, JSON.stringify(result));
      setTimeout(() => {
        writeFileSync(file, JSON.stringify({ ...result, open: openNow() } satisfies SuiteResult));
      }, LOOK_AFTER_MS).unref();
    });
  }
}

const say = (text: string): void => mocha.reporters.Base.consoleLog(text);

const runAgain = (test: Mocha.Runnable): string => {
  const file = relative(ROOT, test.file ?? '');
  const title = test.fullTitle().replaceAll("'", String.raw`'\''`);
  return `again: script/test ${file} --grep '${title}'`;
};

/** From the end of the file before it, with hooks. */
const timesOf = (runner: Mocha.Runner): (() => readonly FileTime[]) => {
  const times = new Map<string, FileTime>();
  let [clock, processor] = [performance.now(), processorSeconds()];
  runner.on(EVENT_SUITE_END, (suite) => {
    if (suite.parent?.root !== true) return;
    const [now, used] = [performance.now(), processorSeconds()];
    const file = relative(ROOT, suite.file ?? '');
    const before = times.get(file);
    times.set(file, {
      file,
      clock: (before?.clock ?? 0) + (now - clock) / 1_000,
      processor: (before?.processor ?? 0) + used - processor,
    });
    [clock, processor] = [now, used];
  });
  return () => [...times.values()];
};

/** A property's failure has its seed in the second line. */
const firstLinesOf = (error: Error | undefined): string =>
  (error?.message.split('\n', 2).join(' ') ?? 'no error').slice(0, 600);

/** Per kind; the others are counted. */
const MOST_SHOWN = 3;

const openNow = (): readonly string[] => {
  const shown = new Map<string, string[]>();
  for (const each of [...openHandles(), ...longTimers()]) {
    const kind = each.split(' ', 1)[0] ?? '';
    shown.set(kind, [...(shown.get(kind) ?? []), each]);
  }
  return [...shown].flatMap(([kind, all]) => [
    ...all.slice(0, MOST_SHOWN),
    ...(all.length > MOST_SHOWN ? [`${all.length - MOST_SHOWN} more of ${kind}`] : []),
  ]);
};

/** Undocumented, but the only way. */
const openHandles = (): readonly string[] => {
  const handles = (
    process as unknown as { _getActiveHandles(): readonly object[] }
  )._getActiveHandles();
  return [
    ...process.getActiveResourcesInfo(),
    ...handles.map((handle) => {
      const { spawnargs, pid, localPort, remotePort, connecting } = handle as Partial<
        ChildProcess & Socket
      >;
      return `${handle.constructor.name} ${spawnargs ? `${pid} ${spawnargs.join(' ')}` : `${localPort ?? ''}-${remotePort ?? ''}${connecting === true ? ' connecting' : ''}`}`.slice(
        0,
        200,
      );
    }),
  ];
};

/** See test/support/harness/skip-because.ts. */
const causeOf = (test: Mocha.Test): string | undefined => {
  for (
    let node: ((Mocha.Test | Mocha.Suite) & { skipCause?: string }) | undefined = test;
    node;
    node = node.parent
  ) {
    if (node.skipCause !== undefined) return node.skipCause;
  }
  return undefined;
};
