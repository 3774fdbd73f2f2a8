import { parseDuration } from './durations.ts';
import { parseQuantity } from './quantities.ts';
import { renderProbe } from './readiness-probe.ts';
import type { ContainerDefinition, EndpointDefinition, InstanceDefinition, SandboxTemplateDocument } from './template.ts';

type Endpoints = NonNullable<SandboxTemplateDocument['spec']['endpoints']>;
type Container = SandboxTemplateDocument['spec']['containers'][number];

const DEFAULT_CPU = '1';
const DEFAULT_MEMORY = '256Mi';
const DEFAULT_COMMAND = ['/bin/sleep', 'infinity'];
/** The home folder of every sandbox's user. */
const HOME = '/home/sandbox';
const DEFAULT_STARTUP_MS = 30_000;

/** What an instance of the template is started from, every default filled in. Limits count; where unset, requests do. */
export const renderDefinition = (document: SandboxTemplateDocument): InstanceDefinition => {
  const { spec } = document;
  return {
    containers: spec.containers.map(renderContainer),
    network: spec.network ?? 'none',
    ...(spec.endpoints && spec.endpoints.length > 0 ? { endpoints: renderEndpoints(spec.endpoints, spec.containers) } : {}),
    startupTimeoutMs: durationOr(spec.startupTimeout, DEFAULT_STARTUP_MS),
    idleTimeoutMs: durationOr(spec.idleTimeout, 0),
    maxLifetimeMs: durationOr(spec.maxLifetime, 0),
    cpu: summed(spec.containers.map(cpuOf), (total) => `${Math.round(total * 1_000)}m`),
    memory: summed(spec.containers.map(memoryOf), (total) => `${Math.ceil(total / 2 ** 20)}Mi`),
  };
};

const renderContainer = (container: Container): ContainerDefinition => ({
  name: container.name,
  image: container.image,
  argv: [...(container.command ?? (container.args ? [] : DEFAULT_COMMAND)), ...(container.args ?? [])],
  env: Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value])),
  workingDir: container.workingDir ?? HOME,
  ...(container.image === 'host' ? {} : { given: givenIn(container) }),
  cpuCores: parseQuantity(cpuOf(container)) ?? 1,
  memoryBytes: Math.floor(parseQuantity(memoryOf(container)) ?? 0),
  ports: portsOf([container]),
  ...(container.readinessProbe ? { readinessProbe: renderProbe(container.readinessProbe, portIn(portsOf([container]))) } : {}),
});

const givenIn = ({ command, args, workingDir }: Container): NonNullable<ContainerDefinition['given']> =>
  ({ ...(command ? { command } : {}), ...(args ? { args } : {}), ...(workingDir === undefined ? {} : { workingDir }) });

const renderEndpoints = (endpoints: Endpoints, containers: readonly Container[]): Record<string, EndpointDefinition> => {
  const named = portsOf(containers);
  return Object.fromEntries(endpoints.map(({ name, port: reference, scheme = 'http', readinessProbe }): [string, EndpointDefinition] => {
    const port = portIn(named)(reference) ?? 0; // the document was checked
    return [name, { port, scheme, ...(readinessProbe ? { readinessProbe: renderProbe(readinessProbe, portIn(named, port)) } : {}) }];
  }));
};

const portsOf = (containers: readonly Container[]): Record<string, number> =>
  Object.fromEntries(containers.flatMap(({ ports = [] }) => ports.map(({ name, containerPort }) => [name, containerPort])));

const portIn = (named: Readonly<Record<string, number>>, otherwise?: number) => (reference: string | number | undefined): number | undefined =>
  typeof reference === 'number' ? reference : reference === undefined ? otherwise : named[reference];

const cpuOf = ({ resources }: Container): string => resources?.limits?.cpu ?? resources?.requests?.cpu ?? DEFAULT_CPU;
const memoryOf = ({ resources }: Container): string => resources?.limits?.memory ?? resources?.requests?.memory ?? DEFAULT_MEMORY;

const durationOr = (text: string | undefined, otherwise: number): number => (text === undefined ? undefined : parseDuration(text)) ?? otherwise;

/** One container's own text stays as it is written. */
const summed = (texts: readonly string[], format: (total: number) => string): string =>
  texts.length === 1 ? texts[0]! : format(texts.reduce((total, text) => total + (parseQuantity(text) ?? 0), 0)); // of length 1
