import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { findPrograms } from './control-plane/programs.ts';
import { NEVER_COMES_MS } from './eventually.ts';

export const CHART = fileURLToPath(new URL('../deploy/helm/sandpool', import.meta.url));

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [part: string]: unknown;
}

export interface Rendering {
  readonly release?: string;
  readonly namespace?: string;
  readonly values?: { readonly image?: object; readonly [value: string]: unknown };
}

/** Throws with its message. */
export const helm = (args: readonly string[], input = ''): string =>
  execFileSync(findPrograms(['helm']).get('helm') ?? '', args, {
    input,
    encoding: 'utf8',
    timeout: NEVER_COMES_MS,
    maxBuffer: 64 * 2 ** 20,
    stdio: ['pipe', 'pipe', 'pipe'],
  });

/** Without custom resource definitions. */
export const renderChart = ({
  release = 'sandpool',
  namespace = 'sandpool-system',
  values = {},
}: Rendering = {}): readonly Manifest[] => {
  const text = helm(
    ['template', release, CHART, '--namespace', namespace, '--values', '-'],
    JSON.stringify({ ...values, image: { repository: 'sandpool', ...values.image } }),
  );
  return parseAllDocuments(text).flatMap((document) => {
    const value: unknown = document.toJS();
    return value === null ? [] : [value as Manifest];
  });
};

export const manifestOf = (
  manifests: readonly Manifest[],
  kind: string,
  name?: string,
): Manifest => {
  const [found, ...more] = manifests.filter(
    (manifest) => manifest.kind === kind && (name === undefined || manifest.metadata.name === name),
  );
  if (!found || more.length > 0)
    throw new Error(`the chart has not exactly one ${kind} ${name ?? ''}`);
  return found;
};
