/** What may carry the cause: a test, or a suite around it. */
interface Skippable {
  skipCause?: string;
}

/**
 * Skips the test, or from a hook all tests of its suite, and says why: `skipBecause(this, 'needs
 * root')`. script/test shows the cause, and counts a skip without one as failed.
 */
export const skipBecause = (context: Mocha.Context, cause: string): never => {
  const runnable: Mocha.Runnable | undefined = context.test;
  const place: object | undefined = /^"(before|after) all"/.test(runnable?.title ?? '')
    ? runnable?.parent
    : /^"(before|after) each"/.test(runnable?.title ?? '')
      ? context.currentTest
      : runnable;
  if (place) Object.assign(place, { skipCause: cause } satisfies Skippable);
  return context.skip();
};
