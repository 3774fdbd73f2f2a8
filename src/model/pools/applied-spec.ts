import type { InstanceType } from '../templates/instance-type.ts';
import { imageOf, type CpuAndMemory, type PoolSource } from './pool-source.ts';
import { formatCpu, formatMemory, parseQuantity } from '../quantities.ts';
import type { TemplateSpec } from '../templates/template.ts';

type Container = TemplateSpec['containers'][number];
type Resources = NonNullable<Container['resources']>;

/**
 * The overrides affect the first container. Without a template, the image of the overrides runs
 * unchanged.
 */
export const appliedSpec = (
  template: TemplateSpec | undefined,
  source: PoolSource,
  instanceType?: InstanceType,
): TemplateSpec => {
  const { overrides = {} } = source;
  const {
    containers: [first, ...others],
    ...rest
  } = template ?? { containers: [UNNAMED] };
  if (!first) return { ...rest, containers: [] }; // the schema rejects such a template
  const image = imageOf(overrides) ?? first.image;
  const resources = resourcesOf(first.resources, source, instanceType);
  return {
    ...rest,
    containers: [{ ...first, image, ...(resources ? { resources } : {}) }, ...others],
    ...(overrides.defaultStartupTimeout === undefined
      ? {}
      : { startupTimeout: overrides.defaultStartupTimeout }),
    ...(overrides.defaultIdleTimeout === undefined
      ? {}
      : { idleTimeout: overrides.defaultIdleTimeout }),
  };
};

export const namesWhatToRun = ({ templateName, template, overrides = {} }: PoolSource): boolean =>
  templateName !== undefined || template !== undefined || imageOf(overrides) !== undefined;

const UNNAMED: Container = { name: 'main', image: 'host' };

/**
 * The last layer that names a resource sets it. A request from `inlineResources` keeps the lower
 * layers' limit, or raises it.
 */
const resourcesOf = (
  template: Resources | undefined,
  source: PoolSource,
  instanceType: InstanceType | undefined,
): Resources | undefined => {
  const { cpu, memory, inlineResources, multiplier = 1 } = source;
  const own = amounts({ cpu, memory });
  const layers: readonly Resources[] = [
    template ?? {},
    ...(instanceType ? [multiplied(instanceType, multiplier)] : []),
    inlineResources ?? {},
    { limits: own },
  ];
  const requests: { cpu?: string; memory?: string } = {};
  const limits: { cpu?: string; memory?: string } = {};
  for (const layer of layers) {
    for (const resource of ['cpu', 'memory'] as const) {
      const request = layer.requests?.[resource];
      const limit = layer.limits?.[resource];
      if (request === undefined && limit === undefined) continue;
      const kept =
        layer === inlineResources
          ? largerThan(request, limits[resource] ?? requests[resource])
          : undefined;
      delete requests[resource];
      delete limits[resource];
      if (request !== undefined) requests[resource] = request;
      const now = limit ?? kept;
      if (now !== undefined) limits[resource] = now;
    }
  }
  const named = {
    ...(isEmpty(requests) ? {} : { requests }),
    ...(isEmpty(limits) ? {} : { limits }),
  };
  return isEmpty(named) ? undefined : named;
};

const largerThan = (request: string | undefined, limit: string | undefined): string | undefined => {
  if (request === undefined || limit === undefined) return undefined;
  return (parseQuantity(limit) ?? 0) > (parseQuantity(request) ?? 0) ? limit : undefined;
};

const multiplied = (
  { baseResources: { requests, limits } }: InstanceType,
  factor: number,
): Resources => ({ requests: times(requests, factor), limits: times(limits, factor) });

/** Leaves an invalid quantity unchanged, but the catalogue was validated. */
const times = ({ cpu, memory }: Readonly<Record<string, string>>, factor: number): CpuAndMemory => {
  const [cores, bytes] = [cpu, memory].map((text) =>
    text === undefined ? undefined : parseQuantity(text),
  );
  return amounts({
    cpu: factor === 1 || cores === undefined ? cpu : formatCpu(cores * factor),
    memory: factor === 1 || bytes === undefined ? memory : formatMemory(bytes * factor),
  });
};

const amounts = ({
  cpu,
  memory,
}: {
  readonly cpu: string | undefined;
  readonly memory: string | undefined;
}): CpuAndMemory => ({
  ...(cpu === undefined ? {} : { cpu }),
  ...(memory === undefined ? {} : { memory }),
});

const isEmpty = (object: object): boolean => Object.keys(object).length === 0;
