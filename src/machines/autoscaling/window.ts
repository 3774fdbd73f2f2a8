/**
 * The least, or the most, of a number over the last so many milliseconds. It is kept as steps:
 * `[from, value]` says that `value` is the extreme of all that was seen since `from`, for every
 * moment up to the next step. A number that does not change leaves the window as it is. At most
 * `MOST_STEPS + 2` steps: a new one begins a share of the span after the one before it, and what
 * comes earlier counts as the extreme before it.
 */
export type SlidingWindow = readonly (readonly [from: number, value: number])[];

export interface WindowRule {
  readonly extreme: 'least' | 'most';
  readonly spanMs: number;
}

const MOST_STEPS = 20;

/** The window with one more sample; the same object where that says nothing new. */
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

/** The extreme of the last `spanMs`; undefined where less than that was seen. */
export const extremeOf = (window: SlidingWindow, now: number, spanMs: number): number | undefined =>
  window.findLast(([from]) => from <= now - spanMs)?.[1];

/** As it would be had all numbers been less by so many. */
export const lowered = (window: SlidingWindow, by: number): SlidingWindow =>
  by === 0 ? window : window.map(([from, value]) => [from, Math.max(0, value - by)]);

const withoutExpired = (window: SlidingWindow, start: number): SlidingWindow => {
  const covering = window.findLastIndex(([from]) => from <= start);
  return covering > 0 ? window.slice(covering) : window;
};
