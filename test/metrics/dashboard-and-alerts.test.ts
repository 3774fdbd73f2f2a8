import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dashboard } from '../../script/dashboard.ts';
import { METRICS, type MetricSpec } from '../../src/contracts/metric-catalogue.ts';
import { PrometheusMetrics } from '../../src/daemon/metrics/prometheus-metrics.ts';
import { alertRules } from '../support/harness/prometheus/alert-rules.ts';

const textOf = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const RULES = alertRules();
const DRILLS = [
  'e2e/alert-drills.test.ts',
  'e2e/alert-drills-audit.test.ts',
  'e2e/alert-drills-broken-build.test.ts',
  'e2e/alert-drills-ends.test.ts',
  'e2e/alert-drills-fleet.test.ts',
  'e2e/alert-drills-webhooks.test.ts',
  'replicas/alert-drills.test.ts',
];
const panels = (
  JSON.parse(dashboard()) as {
    panels: readonly {
      id: number;
      type: string;
      gridPos: { x: number; y: number; w: number; h: number };
      targets?: readonly { expr: string }[];
    }[];
  }
).panels;

/** Names of metrics in an expression, and the labels that each is asked for. */
const askedFor = (
  expression: string,
): readonly { readonly name: string; readonly labels: readonly string[] }[] =>
  [...expression.matchAll(/\b((?:sandpool|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      labels: [...matchers.matchAll(/([a-z_]+)\s*=/g)].map(([, label = '']) => label),
    }),
  );

describe('the dashboard and alert rules', () => {
  const known = new Map<string, readonly string[]>();

  before(async () => {
    for (const [name, { kind, labels }] of Object.entries<MetricSpec>(METRICS)) {
      if (kind !== 'histogram') known.set(name, labels);
      else
        for (const part of ['_bucket', '_sum', '_count'])
          known.set(name + part, [...labels, ...(part === '_bucket' ? ['le'] : [])]);
    }
    for (const [, name = ''] of (await new PrometheusMetrics().text()).matchAll(
      /^# TYPE ((?:nodejs|process)_\S+)/gm,
    ))
      known.set(name, []);
  });

  const expressions = [
    ...RULES.map(({ alert, expr }) => [`the alert ${alert}`, expr] as const),
    ...panels.flatMap(({ id, targets = [] }) =>
      targets.map(({ expr }) => [`panel ${id}`, expr] as const),
    ),
  ];

  it('use existing metrics and labels', () => {
    const wrong = expressions.flatMap(([where, expression]) =>
      askedFor(expression).flatMap(({ name, labels }) => {
        const own = known.get(name);
        if (!own) return [`${where}: there is no ${name}`];
        return labels
          .filter((label) => !['job', 'instance', ...own].includes(label))
          .map((label) => `${where}: ${name} has no label ${label}`);
      }),
    );

    expect(wrong).to.deep.equal([]);
    expect(expressions.flatMap(([, expression]) => askedFor(expression))).to.have.length.above(60);
  });

  it('show each metric somewhere', () => {
    const shown = new Set(
      expressions.flatMap(([, expression]) =>
        askedFor(expression).map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')),
      ),
    );

    expect(Object.keys(METRICS).filter((name) => !shown.has(name))).to.deep.equal([]);
  });

  it('have panels with unique ids that do not overlap', () => {
    const squares = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );

    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
    expect(new Set(squares).size).to.equal(squares.length);
  });

  it('give each alert a severity, a meaning and a link', () => {
    const page = textOf('docs/operating.md');
    for (const { alert, labels, annotations } of RULES) {
      expect(['critical', 'warning', 'info'], alert).to.include(labels.severity);
      expect(annotations, alert).to.have.all.keys('summary', 'description', 'runbook_url');
      expect(annotations['runbook_url']).to.equal(`docs/operating.md#${alert.toLowerCase()}`);
      expect(page).to.match(new RegExp(`^#+ ${alert}$`, 'm'));
    }
    expect([...page.matchAll(/^#+ (Sandpool[A-Z]\w+)$/gm)].map(([, name]) => name)).to.deep.equal(
      RULES.map(({ alert }) => alert),
    );
  });

  it('have a runbook per alert that begins with a command and explains its output', () => {
    const sections = textOf('docs/operating.md').split(/^### /m);
    const without = RULES.filter(({ alert }) => {
      const section = sections.find((text) => text.startsWith(`${alert}\n`)) ?? '';
      return !/^\w+\n\n`[a-z][^`]+`[^\n]*: \S/.test(section);
    });

    expect(without.map(({ alert }) => alert)).to.deep.equal([]);
  });

  it('have a test case in which each alert fires', () => {
    const cases = textOf('deploy/prometheus/alerts.test.yaml');

    expect(RULES.filter(({ alert }) => !cases.includes(`alertname="${alert}"`))).to.deep.equal([]);
  });

  it('have a drill per alert on a real daemon, and a row of docs/drills.md', () => {
    const code = DRILLS.map((path) => textOf(`test/${path}`)).join('\n');
    const titles = [...code.matchAll(/^  it\('([^:']+):/gm)]
      .map(([, named = '']) => named)
      .join(' ');
    const lacking = RULES.flatMap(({ alert }) => [
      ...(new RegExp(`\\b${alert}\\b`).test(titles)
        ? []
        : [`${alert}: no drill is named after it`]),
      ...(new RegExp(`'${alert}'`).test(code) ? [] : [`${alert}: no drill asks for it`]),
      ...(new RegExp(`^\\| ${alert} \\|`, 'm').test(textOf('docs/drills.md'))
        ? []
        : [`${alert}: docs/drills.md has no row of it`]),
    ]);

    expect(lacking).to.deep.equal([]);
  });
});
