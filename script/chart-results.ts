/** Writes anew what test/kubernetes/chart.test.ts compares the chart's renderings with. */
import { writeFileSync } from 'node:fs';
import { CHART_CASES, chartResult, keptResult } from '../local-cluster/chart-results.ts';

for (const name of CHART_CASES) writeFileSync(keptResult(name), chartResult(name));
