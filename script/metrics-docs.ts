/**
 * Writes docs/metrics.md from the catalogue of metrics. With `--check` it writes nothing and ends
 * with 1 where the page is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { METRICS, type MetricSpec } from '../src/contracts/metric-catalogue.ts';

const PAGE = fileURLToPath(new URL('../docs/metrics.md', import.meta.url));

const PROSE = `
<!-- Written by script/metrics-docs.ts from src/contracts/metric-catalogue.ts. -->

# Metrics

What \`GET /metrics\` answers; where it does is told in [operating](operating.md#metrics). Times are seconds. A histogram has the series
\`_bucket\` (with the label \`le\`), \`_sum\` and \`_count\`. *Series* is how many combinations of labels are told apart at most: whatever
comes beyond counts as \`other\`. Beside these there are those of Node and the process, \`nodejs_…\` and \`process_…\`, as the client library
[prom-client](https://github.com/siimon/prom-client) has them; the most telling one is \`nodejs_eventloop_lag_p99_seconds\`, how late the
event loop is.
`;

export const metricsPage = (): string => {
  const rows = Object.entries<MetricSpec>(METRICS).map(([name, { kind, labels, most, help }]) => [
    `\`${name}\``,
    kind,
    labels.map((label) => `\`${label}\``).join(', ') || '–',
    labels.length === 0 ? '1' : String(most),
    help,
  ]);
  const table = [
    ['metric', 'kind', 'labels', 'series', ''],
    ['---', '---', '---', '---', '---'],
    ...rows,
  ];
  return `${PROSE.trim()}\n\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
};

export const metricsPageIsFresh = (): boolean => readFileSync(PAGE, 'utf8') === metricsPage();

const main = (args: readonly string[]): number => {
  if (!args.includes('--check')) {
    writeFileSync(PAGE, metricsPage());
    return 0;
  }
  if (metricsPageIsFresh()) return 0;
  process.stderr.write('docs/metrics.md is stale: run npx tsx script/metrics-docs.ts\n');
  return 1;
};

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = main(process.argv.slice(2));
