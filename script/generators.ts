import { chartResults } from '../local-cluster/chart-results.ts';
import { autoscalingPlots } from '../simulation/plots.ts';
import { apiPage } from './api-docs.ts';
import { approvalPage } from './approval-docs.ts';
import { capacityPage } from './capacity.ts';
import { chartPages } from './charts.ts';
import { cliPage } from './cli-docs.ts';
import { clientTypes } from './client-types.ts';
import { interpreterFiles } from './code-interpreter.ts';
import { configPage } from './config-docs.ts';
import { crdFiles } from './crds.ts';
import { dashboard } from './dashboard.ts';
import { protocolFiles, staleProtocolFiles } from './e2b-protocol.ts';
import { type GeneratedFiles, staleFiles, writeFiles } from './generated-files.ts';
import { metricsPage } from './metrics-docs.ts';

/** Makes files of the repository from its sources. */
export interface Generator {
  readonly name: string;
  /** Returns the files as they should be. */
  readonly files: () => GeneratedFiles | Promise<GeneratedFiles>;
  /** Returns the paths of the stale files, if that is known without making them. */
  readonly stale?: () => readonly string[];
  /** Why it runs only by its name. */
  readonly apart?: string;
}

const oneFile = (path: string, text: string): GeneratedFiles => new Map([[path, text]]);

/** Every generator, but script/api-examples.ts: it asks a built daemon. */
export const GENERATORS: readonly Generator[] = [
  { name: 'api-docs', files: () => oneFile('docs/api.md', apiPage()) },
  { name: 'approval-docs', files: () => oneFile('docs/approvals.md', approvalPage()) },
  { name: 'capacity', files: () => oneFile('docs/capacity.md', capacityPage()) },
  { name: 'charts', files: chartPages },
  { name: 'cli-docs', files: async () => oneFile('docs/command-line.md', await cliPage()) },
  { name: 'client-types', files: clientTypes },
  { name: 'code-interpreter', files: interpreterFiles },
  { name: 'config-docs', files: () => oneFile('docs/configuration.md', configPage()) },
  { name: 'crds', files: crdFiles },
  { name: 'dashboard', files: () => oneFile('deploy/grafana/sandpool.json', dashboard()) },
  { name: 'e2b-protocol', files: protocolFiles, stale: staleProtocolFiles },
  { name: 'metrics-docs', files: () => oneFile('docs/metrics.md', metricsPage()) },
  { name: 'autoscaling-plots', files: autoscalingPlots, apart: 'takes half a minute' },
  { name: 'chart-results', files: chartResults, apart: 'needs helm' },
];

/** Returns a line for each stale file: its path, and the command that writes it. */
export const staleLines = async (
  generators: readonly Generator[],
  root?: string,
): Promise<readonly string[]> => {
  const lines: string[] = [];
  for (const { name, files, stale } of generators)
    for (const path of stale?.() ?? staleFiles(await files(), root))
      lines.push(`${path} is stale: script/generate ${name} writes it`);
  return lines;
};

/** Writes the stale files, and returns their paths. */
export const writeStale = async (generators: readonly Generator[]): Promise<readonly string[]> => {
  const written: string[] = [];
  for (const { files, stale } of generators)
    if (stale?.().length !== 0) written.push(...writeFiles(await files()));
  return written;
};
