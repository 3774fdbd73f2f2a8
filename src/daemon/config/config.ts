import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  defaultDataDir,
  environment,
  type NamedTexts,
  plainDataDir,
  variable,
} from './environment.ts';
import {
  environmentLayer,
  type Fault,
  fileLayer,
  flagLayer,
  type Layer,
  readText,
} from './layers.ts';
import { type Config, ConfigSchema } from './schema.ts';
import { listSettings, type Setting } from './settings.ts';
import type { GivenSetting } from './shown.ts';

export type { Config, Fault, NamedTexts };

export class ConfigFaults extends Error {
  override readonly name = 'ConfigFaults';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super(
      faults
        .map(({ setting, origin, problem }) =>
          setting === '' ? `${origin} ${problem}` : `${setting} ${problem} (${origin})`,
        )
        .join('\n'),
    );
    this.faults = faults;
  }

  get text(): string {
    const count = this.faults.length;
    return (
      'The configuration has ' +
      `${count === 1 ? 'an error' : `${count} errors`}:\n${this.message.replace(/^/gm, '  ')}`
    );
  }
}

export interface ConfigSources {
  readonly argvOptions?: NamedTexts;
  readonly env?: NamedTexts;
  /** Later files override earlier ones. */
  readonly files?: readonly string[];
}

export interface LoadedConfig {
  readonly config: Config;
  readonly origins: Readonly<Record<string, string>>;
  /** In schema order, unparsed: durations are text. */
  readonly given: readonly GivenSetting[];
}

export interface ConfigFlag {
  readonly flags: string;
  readonly description: string;
}

/**
 * Loads files, then SANDPOOL_* variables, then flags; later sources override earlier ones. Throws
 * ConfigFaults with all faults.
 */
export const loadConfig = ({
  argvOptions = {},
  env = environment(),
  files = [DEFAULT_FILE],
}: ConfigSources = {}): LoadedConfig => {
  const settings = listSettings();
  const chosen = argvOptions['config'] ?? variable(env, 'SANDPOOL_CONFIG');
  const layers: readonly Layer[] = [
    {
      values: new Map([
        ['dataDir', { value: defaultDataDir(env), origin: 'default' }],
        ...otelLayer(env, settings),
      ]),
      faults: [],
    },
    ...[...files, ...(chosen === undefined ? [] : [resolve(chosen)])].map((file) =>
      fileLayer(file, settings),
    ),
    environmentLayer(env, settings, NOT_SETTINGS),
    flagLayer(argvOptions, settings),
  ];
  const values = new Map(layers.flatMap((layer) => [...layer.values]));
  const origins = Object.fromEntries(
    [...values].map(([path, { origin }]) => [path, origin === DEFAULT_FILE ? 'default' : origin]),
  );
  const parsed = ConfigSchema.safeParse(treeOf(values, settings));
  const faults = layers.flatMap((layer) => layer.faults);
  if (!parsed.success) {
    faults.push(
      ...parsed.error.issues.map((issue): Fault => {
        const setting =
          settings.find(({ path }) => `${issue.path.join('.')}.`.startsWith(`${path}.`))?.path ??
          issue.path.join('.');
        return values.has(setting)
          ? { setting, origin: origins[setting] ?? '', problem: issue.message }
          : { setting, origin: 'no source', problem: 'is not set' };
      }),
    );
  }
  if (faults.length > 0 || !parsed.success) throw new ConfigFaults(faults);
  const given = settings.map((setting) => ({
    setting,
    value: values.get(setting.path)?.value,
    origin: origins[setting.path] ?? 'default',
  }));
  return { config: parsed.data, origins, given };
};

/** By flag, SANDPOOL_DATA_DIR, SANDPOOL_CONFIG, or default. */
export const dataDirFrom = (env: NamedTexts, flag?: string): string =>
  plainDataDir(env, flag) ?? loadConfig({ env }).config.dataDir;

/** Secrets have no flag. */
export const configFlags = (): readonly ConfigFlag[] => [
  {
    flags: '--config <file>',
    description: 'YAML file of settings; see config/default.yaml. [SANDPOOL_CONFIG]',
  },
  ...listSettings().flatMap(({ flag, kind, variable, description }) =>
    flag === undefined
      ? []
      : [{ flags: `${flag} <${kind}>`, description: `${description} [${variable}]` }],
  ),
];

const OTEL_VARIABLES: Readonly<Record<string, string>> = {
  OTEL_EXPORTER_OTLP_ENDPOINT: 'tracing.endpoint',
  OTEL_EXPORTER_OTLP_HEADERS: 'tracing.headers',
  OTEL_EXPORTER_OTLP_COMPRESSION: 'tracing.compression',
  OTEL_SERVICE_NAME: 'tracing.serviceName',
  OTEL_RESOURCE_ATTRIBUTES: 'tracing.resourceAttributes',
};

const otelLayer = (env: NamedTexts, settings: readonly Setting[]): Layer['values'] =>
  new Map(
    Object.entries(OTEL_VARIABLES).flatMap(([name, path]) => {
      const setting = settings.find((one) => one.path === path);
      const text = variable(env, name);
      return setting && text !== undefined
        ? [[path, { value: readText(setting, text), origin: name }]]
        : [];
    }),
  );

/** The shipped files, also that for Kubernetes, only hold defaults. */
export const isAskedFor = (origin: string | undefined): boolean =>
  origin !== undefined && origin !== 'default' && origin !== KUBERNETES_FILE;

const KUBERNETES_FILE = fileURLToPath(new URL('../../../config/kubernetes.yaml', import.meta.url));
const DEFAULT_FILE = fileURLToPath(new URL('../../../config/default.yaml', import.meta.url));

/** The command line reads some, and Kubernetes sets others for a service named sandpool. */
const NOT_SETTINGS = /^SANDPOOL_(CONFIG|SERVER|API_KEY|API_KEY_FILE|SERVICE_.*|PORT|PORT_.*)$/;

/**
 * Includes every group, so that a fault names the missing setting. Only known paths become keys.
 */
const treeOf = (values: Layer['values'], settings: readonly Setting[]): unknown => {
  const groups = new Map<string, Record<string, unknown>>();
  const root: Record<string, unknown> = {};
  for (const { path } of settings) {
    const [key = '', below] = path.split('.');
    const value = values.get(path)?.value;
    if (below === undefined) {
      if (value !== undefined) root[key] = value;
      continue;
    }
    const group = groups.get(key) ?? {};
    groups.set(key, group);
    root[key] = group;
    if (value !== undefined) group[below] = value;
  }
  return root;
};
