import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { type Rendering, renderChart } from './chart.ts';

const FOLDER = 'test/kubernetes/chart-cases';
const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../${FOLDER}/${name}`, import.meta.url));

/** Whose manifests are kept whole. */
const USUAL = 'usual';

/**
 * What the chart makes of each value file, by the path where that is kept (script/generate
 * chart-results): all of the usual values' manifests, and of the others those that differ.
 */
export const chartResults = (): ReadonlyMap<string, string> => {
  const usual = manifestsOf(USUAL);
  return new Map(
    readdirSync(fileOf(''))
      .filter((file) => file.endsWith('.values.yaml'))
      .sort()
      .map((file) => file.replace('.values.yaml', ''))
      .map((name) => [
        `${FOLDER}/${name}.rendered.yaml`,
        name === USUAL ? [...usual.values()].join('---\n') : differing(manifestsOf(name), usual),
      ]),
  );
};

type Manifests = ReadonlyMap<string, string>;

/** The manifests that are not as the usual ones, after the names of those that are not there. */
const differing = (manifests: Manifests, usual: Manifests): string =>
  [
    [...usual.keys()].filter((name) => !manifests.has(name)).map((name) => `# no ${name}\n`),
    [...manifests].filter(([name, text]) => usual.get(name) !== text).map(([, text]) => text),
  ]
    .map((part, n) => part.join(n === 0 ? '' : '---\n'))
    .join('');

/** By kind and name, as YAML; what is drawn by lot for Secrets left out. */
const manifestsOf = (name: string): Manifests => {
  const values = parse(readFileSync(fileOf(`${name}.values.yaml`), 'utf8')) as NonNullable<
    Rendering['values']
  >;
  return new Map(
    renderChart({ values }).map(({ data, ...manifest }) => [
      [manifest.kind, manifest.metadata.namespace ?? '', manifest.metadata.name].join(' '),
      stringify(
        manifest.kind === 'Secret'
          ? { ...manifest, data: Object.keys(data as object) }
          : { ...manifest, ...(data === undefined ? {} : { data }) },
      ).replaceAll(PACKED, 'a program that is packed'),
    ]),
  );
};

/** What is compressed says nothing to a reader, and is tested elsewhere. */
const PACKED = /[A-Za-z0-9+/=]{1000,}/g;
