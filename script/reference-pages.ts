import { apiPages } from './api-docs.ts';
import { chartPages } from './charts.ts';
import { cliPage } from './cli-docs.ts';
import { settingsPage } from './config-docs.ts';
import type { GeneratedFiles } from './generated-files.ts';
import { metricsPage } from './metrics-docs.ts';

/** Returns the pages of docs/reference by path. git ignores them; script/build writes them. */
export const referencePages = async (): Promise<GeneratedFiles> =>
  new Map([
    ...apiPages(),
    ['docs/reference/command-line.md', await cliPage()],
    ['docs/reference/settings.md', settingsPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ...chartPages(),
  ]);
