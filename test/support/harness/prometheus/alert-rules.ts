import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { evaluate, type Value } from './evaluate.ts';
import { parseExpression, type Expression } from './expression.ts';
import type { RecordedSeries } from './recorded-series.ts';

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** As `5m`; by default at once. */
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const RULES_FILE = fileURLToPath(
  new URL('../../../../deploy/prometheus/alerts.yaml', import.meta.url),
);

/** From deploy/prometheus/alerts.yaml. */
export const alertRules = (): readonly AlertRule[] =>
  (
    parse(readFileSync(RULES_FILE, 'utf8')) as {
      groups: readonly { rules: readonly AlertRule[] }[];
    }
  ).groups.flatMap(({ rules }) => rules);

/** Evaluates each rule's own expression. */
export class RuleBook {
  readonly #expressions: ReadonlyMap<string, Expression>;

  constructor(rules: readonly AlertRule[] = alertRules()) {
    this.#expressions = new Map(rules.map(({ alert, expr }) => [alert, parseExpression(expr)]));
  }

  /** Empty if the alert is quiet. */
  holds(alert: string, series: RecordedSeries, moment: number): readonly Value[] {
    const expression = this.#expressions.get(alert);
    if (!expression) throw new Error(`there is no alert ${alert}`);
    return evaluate(expression, series, moment);
  }
}
