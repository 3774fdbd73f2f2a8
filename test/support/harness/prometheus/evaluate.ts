import type { Expression } from './expression.ts';
import { keyOf, type Labels, type RecordedSeries } from './recorded-series.ts';

export interface Value {
  readonly labels: Labels;
  readonly value: number;
}

/**
 * Evaluates at a moment in seconds; `deploy/prometheus/alerts.test.yaml` holds Prometheus to the
 * same results.
 */
export const evaluate = (
  expression: Expression,
  series: RecordedSeries,
  moment: number,
): readonly Value[] => {
  const inner = (part: Expression): readonly Value[] => evaluate(part, series, moment);
  switch (expression.kind) {
    case 'number':
      return [{ labels: {}, value: expression.value }];
    case 'selector':
      return series.at(moment, expression);
    case 'aggregate':
      return aggregated(expression, inner(expression.of));
    case 'binary':
      return combined(expression, inner(expression.left), inner(expression.right));
    case 'call': {
      const [first, second] = expression.given;
      if (!first) throw new Error(`${expression.name} of nothing`);
      if (expression.name === 'absent')
        return inner(first).length === 0 ? [{ labels: {}, value: 1 }] : [];
      if (expression.name === 'histogram_quantile' && first.kind === 'number' && second)
        return quantiles(first.value, inner(second));
      if (first.kind !== 'selector' || first.rangeSeconds === undefined)
        throw new Error(`${expression.name} needs a range`);
      const { rangeSeconds } = first;
      return series.within(moment, first).flatMap(({ labels, points }) => {
        const last = points.at(-1);
        if (expression.name === 'last_over_time')
          return last ? [{ labels, value: last.value }] : [];
        const grown = increase(points, { from: moment - rangeSeconds, to: moment });
        return grown === undefined
          ? []
          : [{ labels, value: expression.name === 'rate' ? grown / rangeSeconds : grown }];
      });
    }
  }
};

type Points = readonly { readonly at: number; readonly value: number }[];

/** As Prometheus: across resets, and extrapolated to the ends of the range if samples are near. */
const increase = (
  points: Points,
  { from, to }: { readonly from: number; readonly to: number },
): number | undefined => {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || points.length < 2) return undefined;
  let grown = last.value - first.value;
  for (const [n, { value }] of points.entries()) {
    const before = points[n - 1]?.value ?? 0;
    if (value < before) grown += before;
  }
  const sampled = last.at - first.at;
  const between = sampled / (points.length - 1);
  const reach = (gap: number): number => (gap < between * 1.1 ? gap : between / 2);
  const toZero = grown > 0 ? sampled * (first.value / grown) : Number.POSITIVE_INFINITY;
  return (
    grown * ((sampled + Math.min(reach(first.at - from), toZero) + reach(to - last.at)) / sampled)
  );
};

const picked = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(
    names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])),
  );

const grouped = (
  values: readonly Value[],
  labelsOf: (labels: Labels) => Labels,
): readonly { readonly labels: Labels; readonly values: readonly Value[] }[] => {
  const groups = new Map<string, { labels: Labels; values: Value[] }>();
  for (const value of values) {
    const labels = labelsOf(value.labels);
    const group = groups.get(keyOf(labels)) ?? { labels, values: [] };
    groups.set(keyOf(labels), group);
    group.values.push(value);
  }
  return [...groups.values()];
};

const aggregated = (
  { by, operator }: Extract<Expression, { kind: 'aggregate' }>,
  values: readonly Value[],
): readonly Value[] =>
  grouped(values, (labels) => picked(labels, by)).map((group) => {
    const all = group.values.map(({ value }) => value);
    return { labels: group.labels, value: AGGREGATE[operator]?.(all) ?? 0 };
  });

const COMPARE: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  '==': (a, b) => a === b,
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
};

const combined = (
  { operator, on, right: by }: Extract<Expression, { kind: 'binary' }>,
  left: readonly Value[],
  right: readonly Value[],
): readonly Value[] => {
  const keyed = ({ labels }: Value): string => keyOf(on ? picked(labels, on) : labels);
  if (operator === 'or')
    return [...left, ...right.filter((other) => !left.some((one) => keyed(one) === keyed(other)))];
  if (operator === 'unless')
    return left.filter((one) => !right.some((other) => keyed(other) === keyed(one)));
  const partner = (value: Value): number | undefined =>
    by.kind === 'number' ? by.value : right.find((other) => keyed(other) === keyed(value))?.value;
  return left.flatMap((one) => {
    const other = partner(one);
    if (other === undefined) return [];
    const compare = COMPARE[operator];
    if (compare) return compare(one.value, other) ? [one] : [];
    if (operator === 'and') return [one];
    return [
      { labels: one.labels, value: operator === '/' ? one.value / other : one.value + other },
    ];
  });
};

const without = (labels: Labels, name: string): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([label]) => label !== name));

const quantiles = (quantile: number, values: readonly Value[]): readonly Value[] =>
  grouped(values, (labels) => without(labels, 'le')).flatMap(({ labels, values: buckets }) => {
    const sorted = buckets
      .map(({ labels: { le = '' }, value }) => ({
        upTo: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le),
        count: value,
      }))
      .toSorted((a, b) => a.upTo - b.upTo);
    const all = sorted.at(-1);
    if (!all || all.upTo !== Number.POSITIVE_INFINITY || sorted.length < 2) return [];
    const rank = quantile * all.count;
    const at = sorted.findIndex(({ count }) => count >= rank);
    const [below, bucket] = [sorted[at - 1] ?? { upTo: 0, count: 0 }, sorted[at]];
    if (all.count === 0 || !bucket) return [{ labels, value: Number.NaN }];
    if (bucket === all) return [{ labels, value: below.upTo }];
    return [
      {
        labels,
        value:
          below.upTo +
          (bucket.upTo - below.upTo) * ((rank - below.count) / (bucket.count - below.count)),
      },
    ];
  });

const AGGREGATE: Readonly<Record<string, (all: readonly number[]) => number>> = {
  count: (all) => all.length,
  max: (all) => Math.max(...all),
  min: (all) => Math.min(...all),
  sum: (all) => all.reduce((sum, value) => sum + value, 0),
};
