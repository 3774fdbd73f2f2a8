import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { type Rendering, renderChart } from './chart.ts';

const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../test/kubernetes/chart-cases/${name}`, import.meta.url));

/** The value files whose renderings are kept, by name. */
export const CHART_CASES: readonly string[] = readdirSync(fileOf(''))
  .filter((file) => file.endsWith('.values.yaml'))
  .map((file) => file.replace('.values.yaml', ''))
  .sort();

/** Where the rendering is kept. */
export const keptResult = (name: string): string => fileOf(`${name}.rendered.yaml`);

/** What the chart makes of the value file, as YAML; what is drawn by lot for Secrets left out. */
export const chartResult = (name: string): string => {
  const values = parse(readFileSync(fileOf(`${name}.values.yaml`), 'utf8')) as NonNullable<
    Rendering['values']
  >;
  return renderChart({ values })
    .map(({ data, ...manifest }) =>
      stringify(
        manifest.kind === 'Secret'
          ? { ...manifest, data: Object.keys(data as object) }
          : { ...manifest, ...(data === undefined ? {} : { data }) },
      ),
    )
    .join('---\n')
    .replaceAll(PACKED, 'a program that is packed');
};

/** What is compressed says nothing to a reader, and is tested elsewhere. */
const PACKED = /[A-Za-z0-9+/=]{1000,}/g;
