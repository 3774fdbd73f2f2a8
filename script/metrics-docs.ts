/** Makes docs/reference/metrics.md from the catalogue of metrics. */
import { METRICS, type MetricSpec } from '../src/contracts/metric-catalogue.ts';

const PROSE = `
<!-- Written by script/metrics-docs.ts from src/contracts/metric-catalogue.ts. -->

# Metrics

\`GET /metrics\` answers these metrics ([address](../observing.md#metrics)). Times are in seconds. *Series* is the maximum number of
combinations of labels; further ones count as \`other\`. There are also the metrics of Node and the process, \`nodejs_…\` and
\`process_…\`, from [prom-client](https://github.com/siimon/prom-client). The most useful one is \`nodejs_eventloop_lag_p99_seconds\`:
how late the event loop is.
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
