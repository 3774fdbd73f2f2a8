import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { type Rendering, renderChart } from './chart.ts';

const FOLDER = 'test/kubernetes/chart-cases';
const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../${FOLDER}/${name}`, import.meta.url));

/** Kept whole. */
const USUAL = 'usual';

/**
 * By path (script/generate chart-results): the usual values' manifests, and how those of the other
 * values differ.
 */
export const chartResults = (): ReadonlyMap<string, string> => {
  const usual = manifestsOf(USUAL);
  return new Map(
    readdirSync(fileOf(''))
      .filter((file) => file.endsWith('.values.yaml'))
      .sort()
      .map((file) => file.replace('.values.yaml', ''))
      .map((name) =>
        name === USUAL
          ? [`${FOLDER}/${name}.rendered.yaml`, [...usual.values()].join('---\n')]
          : [`${FOLDER}/${name}.difference.txt`, difference(usual, manifestsOf(name))],
      ),
  );
};

type Manifests = ReadonlyMap<string, string>;

/** Removed manifests, changed fields, added manifests. */
const difference = (usual: Manifests, manifests: Manifests): string => {
  const gone = [...usual.keys()].filter((name) => !manifests.has(name));
  const changed = [...manifests].flatMap(([name, text]) => {
    const before = usual.get(name);
    return before === undefined || before === text ? [] : [changes(name, before, text)];
  });
  const added = [...manifests].filter(([name]) => !usual.has(name)).map(([, text]) => text);
  return [...gone.map((name) => `no ${name}\n`), ...changed, added.join('---\n')].join('');
};

const changes = (name: string, before: string, after: string): string => {
  const [old, now] = [fieldsOf(parse(before)), fieldsOf(parse(after))];
  const lines = [
    ...old.filter((field) => !now.includes(field)).map((field) => `- ${field}`),
    ...now.filter((field) => !old.includes(field)).map((field) => `+ ${field}`),
  ];
  if (lines.length === 0) throw new Error(`the order of ${name} changed, which this can't show`);
  return [name, ...lines, ''].join('\n');
};

/** A line for each field: its path, with items of a list by name, and its value. */
const fieldsOf = (value: unknown, path = ''): readonly string[] => {
  if (typeof value === 'string' && path.endsWith('.yaml')) return fieldsOf(parse(value), path);
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0)
    return [`${path}: ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([key, item]: [string, unknown]) =>
    fieldsOf(item, Array.isArray(value) ? `${path}[${nameOf(item) ?? key}]` : `${path}.${key}`),
  );
};

const nameOf = (item: unknown): string | undefined =>
  typeof item === 'object' && item !== null && 'name' in item && typeof item.name === 'string'
    ? item.name
    : undefined;

/** As YAML, without random values of Secrets. */
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

/** Compressed content says nothing to a reader, and is tested elsewhere. */
const PACKED = /[A-Za-z0-9+/=]{1000,}/g;
