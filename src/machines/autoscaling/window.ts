/**
 * The minimum or maximum of a number over a sliding window. Stored as steps: `[from, value]` is the
 * extreme of all samples since `from`, for each time up to the next step. An unchanged number
 * leaves the window unchanged. At most `MOST_STEPS + 2` steps: a new step begins a share of the
 * span after the previous one; earlier samples count towards the previous extreme.
 */
export type SlidingWindow = readonly (readonly [from: number, value: number])[];

export interface WindowRule {
  readonly extreme: 'least' | 'most';
  readonly spanMs: number;
}

const MOST_STEPS = 20;

/** The window with one more sample; the same object if nothing changes. */
export const sampled = (
  window: SlidingWindow,
  { value, at }: { readonly value: number; readonly at: number },
  rule: WindowRule,
): SlidingWindow => {
  const kept = withoutExpired(window, at - rule.spanMs);
  const first = kept.findIndex(([, earlier]) =>
    rule.extreme === 'least' ? earlier >= value : earlier <= value,
  );
  const overruled = kept[first];
  if (overruled)
    return overruled[1] === value && first === kept.length - 1
      ? kept
      : [...kept.slice(0, first), [overruled[0], value]];
  const last = kept.at(-1);
  return last && at - last[0] < rule.spanMs / MOST_STEPS ? kept : [...kept, [at, value]];
};

/** The extreme of the last `spanMs`; undefined before the window covers that time. */
export const extremeOf = (window: SlidingWindow, now: number, spanMs: number): number | undefined =>
  window.findLast(([from]) => from <= now - spanMs)?.[1];

/** The window with every number lowered by this amount. */
export const lowered = (window: SlidingWindow, by: number): SlidingWindow =>
  by === 0 ? window : window.map(([from, value]) => [from, Math.max(0, value - by)]);

const withoutExpired = (window: SlidingWindow, start: number): SlidingWindow => {
  const covering = window.findLastIndex(([from]) => from <= start);
  return covering > 0 ? window.slice(covering) : window;
};
