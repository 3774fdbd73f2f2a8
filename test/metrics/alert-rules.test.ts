import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { alertRules, RuleBook, type AlertRule } from '../support/harness/prometheus/alert-rules.ts';
import { parseExpression } from '../support/harness/prometheus/expression.ts';
import {
  keyOf,
  RecordedSeries,
  type Labels,
} from '../support/harness/prometheus/recorded-series.ts';

interface Case {
  readonly name: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly promql_expr_test: readonly {
    readonly eval_time: string;
    readonly exp_samples: readonly { readonly labels: string; readonly value: number }[];
  }[];
}

const CASES_FILE = fileURLToPath(
  new URL('../../deploy/prometheus/alerts.test.yaml', import.meta.url),
);
const CASES = (parse(readFileSync(CASES_FILE, 'utf8')) as { tests: readonly Case[] }).tests;
type Sample = number | 'stale' | undefined;
const minutesOf = (text = '0m'): number => Number(/^(\d+)m$/.exec(text)?.[1]);

/**
 * Reads promtool's notation: `0+60x3` is 0, 60, 120, 180; `_x2` is no sample, twice; `stale` ends
 * the series.
 */
const valuesOf = (notation: string): readonly Sample[] =>
  notation.split(' ').flatMap((part): readonly Sample[] => {
    if (part === 'stale') return [part];
    const [, first = '', step = '0', times] =
      /^(_|-?[\d.]+)([+-][\d.]+)?(?:x(\d+))?$/.exec(part) ?? [];
    if (first === '') throw new Error(`no values: ${part}`);
    if (first === '_') return Array.from({ length: Number(times ?? 1) }, () => undefined);
    return Array.from(
      { length: times === undefined ? 1 : Number(times) + 1 },
      (_, n) => Number(first) + n * Number(step),
    );
  });

const seriesOf = ({ input_series: given }: Case): RecordedSeries => {
  const recorded = new RecordedSeries();
  for (const { series, values } of given) {
    const [, name = '', matchers = ''] = /^([a-z0-9_]+)\{(.*)\}$/.exec(series) ?? [];
    const labels: Labels = Object.fromEntries(
      [...matchers.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [
        label,
        value,
      ]),
    );
    for (const [minute, value] of valuesOf(values).entries())
      if (value !== undefined)
        recorded.add(minute * 60, { name, labels, value: value === 'stale' ? undefined : value });
  }
  return recorded;
};

/** The alerts that fire at this minute, looked at every minute from the first on. */
const firingAt = (
  last: number,
  series: RecordedSeries,
  { rules, book }: { readonly rules: readonly AlertRule[]; readonly book: RuleBook },
): readonly string[] =>
  rules
    .filter(({ alert, for: lasting }) => {
      let since = new Map<string, number>();
      for (let minute = 0; minute <= last; minute++) {
        since = new Map(
          book
            .holds(alert, series, minute * 60)
            .map(({ labels }) => [keyOf(labels), since.get(keyOf(labels)) ?? minute]),
        );
      }
      return [...since.values()].some((from) => last - from >= minutesOf(lasting));
    })
    .map(({ alert }) => alert);

/**
 * The drills hold the rules' expressions against real daemons with this evaluator; promtool says
 * the same of the same cases.
 */
describe('alert rules evaluated for the drills', () => {
  const rules = alertRules();
  const book = new RuleBook();

  for (const one of CASES) {
    it(one.name, () => {
      const series = seriesOf(one);
      for (const { eval_time: moment, exp_samples: expected } of one.promql_expr_test) {
        const names = expected.map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1] ?? '');
        expect(firingAt(minutesOf(moment), series, { rules, book }), moment).to.have.members(names);
      }
    });
  }

  it('are refused if they contain unknown syntax', () => {
    for (const text of [
      'avg by (job) (a)',
      'a{b!="c"}',
      'a offset 5m',
      'sum(a)',
      'rate(a[5m]',
      'a > bool 1',
      'a b',
    ])
      expect(() => parseExpression(text), text).to.throw('not understood');
  });
});
