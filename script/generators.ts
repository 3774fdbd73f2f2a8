import { chartResults } from '../local-cluster/chart-results.ts';
import { autoscalingPlots } from '../simulation/plots.ts';
import { capacityPage } from './capacity.ts';
import { clientTypes } from './client-types.ts';
import { interpreterFiles } from './code-interpreter.ts';
import { crdFiles } from './crds.ts';
import { dashboard } from './dashboard.ts';
import { protocolFiles, staleProtocolFiles } from './e2b-protocol.ts';
import { type GeneratedFiles, staleFiles, writeFiles } from './generated-files.ts';
import { referencePages } from './reference-pages.ts';

export interface Generator {
  readonly name: string;
  readonly files: () => GeneratedFiles | Promise<GeneratedFiles>;
  readonly stale?: () => readonly string[];
  /** Why it runs only by its name. */
  readonly apart?: string;
  /** Set if git ignores the files: script/build writes them. */
  readonly atBuild?: boolean;
}

const oneFile = (path: string, text: string): GeneratedFiles => new Map([[path, text]]);

/** Except script/api-examples.ts, which asks a built daemon. */
export const GENERATORS: readonly Generator[] = [
  { name: 'capacity', files: () => oneFile('docs/capacity.md', capacityPage()) },
  { name: 'client-types', files: clientTypes },
  { name: 'code-interpreter', files: interpreterFiles },
  { name: 'crds', files: crdFiles },
  { name: 'dashboard', files: () => oneFile('deploy/grafana/sandpool.json', dashboard()) },
  { name: 'e2b-protocol', files: protocolFiles, stale: staleProtocolFiles },
  { name: 'reference', files: referencePages, atBuild: true },
  { name: 'autoscaling-plots', files: autoscalingPlots, apart: 'takes a quarter of a minute' },
  { name: 'chart-results', files: chartResults, apart: 'needs helm' },
];

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

export const writeStale = async (generators: readonly Generator[]): Promise<readonly string[]> => {
  const written: string[] = [];
  for (const { files, stale } of generators)
    if (stale?.().length !== 0) written.push(...writeFiles(await files()));
  return written;
};
