interface Skippable {
  skipCause?: string;
}

/**
 * Skips a test, or from a hook its suite, with a cause: `skipBecause(this, 'needs root')`.
 * script/test counts a skip without a cause as failed.
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
