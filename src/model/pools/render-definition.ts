import { parseDuration } from '../durations.ts';
import { placementIn } from '../templates/placement.ts';
import { formatMemory, parseQuantity } from '../quantities.ts';
import { renderProbe } from '../templates/readiness-probe.ts';
import type { PoolOverrides } from './pool-source.ts';
import type {
  ContainerDefinition,
  EndpointDefinition,
  InstanceDefinition,
  TemplateSpec,
} from '../templates/template.ts';

type Endpoints = NonNullable<TemplateSpec['endpoints']>;
type Container = TemplateSpec['containers'][number];

const DEFAULT_CPU = '1';
const DEFAULT_MEMORY = '256Mi';
const DEFAULT_COMMAND = ['/bin/sleep', 'infinity'];
const HOME = '/home/sandbox';
/** Read by Sandpool's own processes in a sandbox. */
const LOG_LEVEL = 'SANDPOOL_LOG_LEVEL';
const DEFAULT_STARTUP_MS = 30_000;

/**
 * Takes a template, or the result of `appliedSpec`. Limits count, or requests if limits are unset.
 */
export const renderDefinition = (
  spec: TemplateSpec,
  { volumes = [], imagePullSecretConfigured, gateway, envd }: PoolOverrides = {},
): InstanceDefinition => {
  const containers = spec.containers.map(renderContainer);
  const placement = placementIn(spec);
  return {
    containers: envd?.verbose === true ? containers.map(madeVerbose) : containers,
    network: spec.network ?? 'none',
    ...(spec.endpoints && spec.endpoints.length > 0
      ? { endpoints: renderEndpoints(spec.endpoints, spec.containers) }
      : {}),
    ...(gateway?.enabled === false ? { unpublished: true } : {}),
    ...(volumes.length > 0 ? { volumes } : {}),
    ...(imagePullSecretConfigured === true ? { imagePullSecret: true } : {}),
    ...(placement ? { placement } : {}),
    startupTimeoutMs: durationOr(spec.startupTimeout, DEFAULT_STARTUP_MS),
    idleTimeoutMs: durationOr(spec.idleTimeout, 0),
    maxLifetimeMs: durationOr(spec.maxLifetime, 0),
    cpu: summed(spec.containers.map(cpuOf), (total) => `${Math.round(total * 1_000)}m`),
    memory: summed(spec.containers.map(memoryOf), formatMemory),
  };
};

const renderContainer = (container: Container): ContainerDefinition => ({
  name: container.name,
  image: container.image,
  argv: [
    ...(container.command ?? (container.args ? [] : DEFAULT_COMMAND)),
    ...(container.args ?? []),
  ],
  env: Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value])),
  workingDir: container.workingDir ?? HOME,
  ...(container.image === 'host' ? {} : { given: givenIn(container) }),
  cpuCores: parseQuantity(cpuOf(container)) ?? 1,
  memoryBytes: Math.floor(parseQuantity(memoryOf(container)) ?? 0),
  ...requestsOf(container),
  ...devicesOf(container),
  ports: portsOf([container]),
  ...(container.readinessProbe
    ? { readinessProbe: renderProbe(container.readinessProbe, portIn(portsOf([container]))) }
    : {}),
});

const devicesOf = ({
  extendedResources,
  ephemeralStorage,
}: Container): Pick<ContainerDefinition, 'extendedResources' | 'ephemeralStorageBytes'> => ({
  ...(extendedResources && Object.keys(extendedResources).length > 0 ? { extendedResources } : {}),
  ...(ephemeralStorage === undefined
    ? {}
    : { ephemeralStorageBytes: Math.floor(parseQuantity(ephemeralStorage) ?? 0) }),
});

/** Ignores a request above its limit. */
const requestsOf = ({ resources }: Container): Pick<ContainerDefinition, 'requests'> => {
  const { requests = {}, limits = {} } = resources ?? {};
  const cpuCores =
    least(requests.cpu, limits.cpu) ??
    parseQuantity(limits.cpu ?? requests.cpu ?? DEFAULT_CPU) ??
    1;
  const memoryBytes = Math.floor(
    least(requests.memory, limits.memory) ??
      parseQuantity(limits.memory ?? requests.memory ?? DEFAULT_MEMORY) ??
      0,
  );
  return least(requests.cpu, limits.cpu) === undefined &&
    least(requests.memory, limits.memory) === undefined
    ? {}
    : { requests: { cpuCores, memoryBytes } };
};

const least = (request: string | undefined, limit: string | undefined): number | undefined => {
  if (request === undefined || limit === undefined) return undefined;
  const [asked = 0, most = 0] = [parseQuantity(request), parseQuantity(limit)];
  return asked < most ? asked : undefined;
};

const madeVerbose = (container: ContainerDefinition): ContainerDefinition => ({
  ...container,
  env: { [LOG_LEVEL]: 'debug', ...container.env },
});

const givenIn = ({
  command,
  args,
  workingDir,
}: Container): NonNullable<ContainerDefinition['given']> => ({
  ...(command ? { command } : {}),
  ...(args ? { args } : {}),
  ...(workingDir === undefined ? {} : { workingDir }),
});

const renderEndpoints = (
  endpoints: Endpoints,
  containers: readonly Container[],
): Record<string, EndpointDefinition> => {
  const named = portsOf(containers);
  return Object.fromEntries(
    endpoints.map(
      ({
        name,
        port: reference,
        scheme = 'http',
        readinessProbe,
      }): [string, EndpointDefinition] => {
        const port = portIn(named)(reference) ?? 0; // the document was validated
        return [
          name,
          {
            port,
            scheme,
            ...(readinessProbe
              ? { readinessProbe: renderProbe(readinessProbe, portIn(named, port)) }
              : {}),
          },
        ];
      },
    ),
  );
};

const portsOf = (containers: readonly Container[]): Record<string, number> =>
  Object.fromEntries(
    containers.flatMap(({ ports = [] }) =>
      ports.map(({ name, containerPort }) => [name, containerPort]),
    ),
  );

const portIn =
  (named: Readonly<Record<string, number>>, otherwise?: number) =>
  (reference: string | number | undefined): number | undefined =>
    typeof reference === 'number'
      ? reference
      : reference === undefined
        ? otherwise
        : named[reference];

const cpuOf = ({ resources }: Container): string =>
  resources?.limits?.cpu ?? resources?.requests?.cpu ?? DEFAULT_CPU;
const memoryOf = ({ resources }: Container): string =>
  resources?.limits?.memory ?? resources?.requests?.memory ?? DEFAULT_MEMORY;

const durationOr = (text: string | undefined, otherwise: number): number =>
  (text === undefined ? undefined : parseDuration(text)) ?? otherwise;

const summed = (texts: readonly string[], format: (total: number) => string): string =>
  texts.length === 1
    ? texts[0]!
    : format(texts.reduce((total, text) => total + (parseQuantity(text) ?? 0), 0)); // [0]: length 1
