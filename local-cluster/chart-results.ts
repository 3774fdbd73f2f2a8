import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { type Rendering, renderChart } from './chart.ts';

const FOLDER = 'test/kubernetes/chart-cases';
const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../${FOLDER}/${name}`, import.meta.url));

/**
 * What the chart makes of each value file, by the path where that is kept (script/generate
 * chart-results).
 */
export const chartResults = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(fileOf(''))
      .filter((file) => file.endsWith('.values.yaml'))
      .sort()
      .map((file) => file.replace('.values.yaml', ''))
      .map((name) => [`${FOLDER}/${name}.rendered.yaml`, chartResult(name)]),
  );

/** What the chart makes of the value file, as YAML; what is drawn by lot for Secrets left out. */
const chartResult = (name: string): string => {
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
