/**
 * The minimum or maximum of a number over a sliding window, as steps: `[from, value]` is the
 * extreme of all samples since `from`, until the next step. At most `MOST_STEPS + 2` steps.
 */
export type SlidingWindow = readonly (readonly [from: number, value: number])[];

export interface WindowRule {
  readonly extreme: 'least' | 'most';
  readonly spanMs: number;
}

const MOST_STEPS = 20;

/** Returns the same object if nothing changes. */
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

/** Undefined before the window covers `spanMs`. */
export const extremeOf = (window: SlidingWindow, now: number, spanMs: number): number | undefined =>
  window.findLast(([from]) => from <= now - spanMs)?.[1];

export const lowered = (window: SlidingWindow, by: number): SlidingWindow =>
  by === 0 ? window : window.map(([from, value]) => [from, Math.max(0, value - by)]);

const withoutExpired = (window: SlidingWindow, start: number): SlidingWindow => {
  const covering = window.findLastIndex(([from]) => from <= start);
  return covering > 0 ? window.slice(covering) : window;
};
