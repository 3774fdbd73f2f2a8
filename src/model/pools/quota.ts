import type { Revision } from '../identifiers.ts';
import type { PoolRecord } from './pool.ts';
import { formatCpu, parseQuantity } from '../quantities.ts';
import type { InstanceDefinition } from '../templates/template.ts';
import type { Tenant } from '../tenant.ts';

export const SIZED_RESOURCES = ['replicas', 'cpu', 'memory'] as const;
export type SizedResource = (typeof SIZED_RESOURCES)[number];
export type SizedAmounts = Readonly<Record<SizedResource, number>>;

export const QUOTA_RESOURCES = ['sandboxes', 'pools', ...SIZED_RESOURCES] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/**
 * Whole numbers, so that every store adds exactly: `cpu` in thousandths of a core, `memory` in KiB.
 * Infinity means unlimited.
 */
export type QuotaAmounts = Readonly<Record<QuotaResource, number>>;

export const CPU_UNITS_PER_CORE = 1_000;
export const BYTES_PER_MEMORY_UNIT = 1_024;

export const eachResource = <T>(
  of: (resource: QuotaResource) => T,
): Readonly<Record<QuotaResource, T>> => ({
  sandboxes: of('sandboxes'),
  pools: of('pools'),
  replicas: of('replicas'),
  cpu: of('cpu'),
  memory: of('memory'),
});

export const HIGHEST_LIMIT: QuotaAmounts = {
  sandboxes: 1_000_000,
  pools: 100_000,
  replicas: 1_000_000,
  cpu: 1_000_000 * CPU_UNITS_PER_CORE,
  memory: 2 ** 50 / BYTES_PER_MEMORY_UNIT,
};

export const sizeLimitOf = (
  resource: keyof typeof NO_SIZE_LIMITS,
  text: string,
): number | undefined => {
  const plain = parseQuantity(text);
  if (plain === undefined) return undefined;
  const units = Math.floor(
    resource === 'cpu'
      ? Math.round(plain * CPU_UNITS_PER_CORE * 1_000) / 1_000
      : plain / BYTES_PER_MEMORY_UNIT,
  );
  return units <= HIGHEST_LIMIT[resource] ? units : undefined;
};

/** Inverse of `sizeLimitOf`. */
export const sizeLimitText = (resource: keyof typeof NO_SIZE_LIMITS, units: number): string =>
  resource === 'cpu' ? formatCpu(units / CPU_UNITS_PER_CORE) : `${units}Ki`;

/** In cores and bytes. */
export const plainAmount = (resource: QuotaResource, amount: number): number => {
  if (resource === 'cpu') return amount / CPU_UNITS_PER_CORE;
  return resource === 'memory' ? amount * BYTES_PER_MEMORY_UNIT : amount;
};

export const NO_SIZE_LIMITS = {
  cpu: Number.POSITIVE_INFINITY,
  memory: Number.POSITIVE_INFINITY,
} as const;

export interface UserQuota extends Tenant {
  readonly revision: Revision;
  readonly limits: Partial<QuotaAmounts>;
}

export const amountsOfPool = ({
  replicas,
  definition,
}: Pick<PoolRecord, 'replicas' | 'definition'>): SizedAmounts => {
  const { cpu, memory } = amountsOfInstance(definition);
  return { replicas, cpu: replicas * cpu, memory: replicas * memory };
};

export const roomFor = (definition: InstanceDefinition, left: SizedAmounts): number => {
  const { cpu, memory } = amountsOfInstance(definition);
  const within = (room: number, each: number): number =>
    each === 0 ? Number.POSITIVE_INFINITY : Math.floor(room / each);
  return Math.max(0, Math.min(left.replicas, within(left.cpu, cpu), within(left.memory, memory)));
};

const amountsOfInstance = ({
  containers,
}: InstanceDefinition): { readonly cpu: number; readonly memory: number } => ({
  cpu: containers.reduce(
    (sum, { cpuCores }) =>
      sum + Math.ceil(Math.round(cpuCores * CPU_UNITS_PER_CORE * 1_000) / 1_000),
    0,
  ),
  memory: containers.reduce(
    (sum, { memoryBytes }) => sum + Math.ceil(memoryBytes / BYTES_PER_MEMORY_UNIT),
    0,
  ),
});
