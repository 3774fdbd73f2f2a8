import type { Revision } from '../identifiers.ts';
import type { PoolRecord } from './pool.ts';
import { formatCpu, parseQuantity } from '../quantities.ts';
import type { InstanceDefinition } from '../templates/template.ts';
import type { Tenant } from '../tenant.ts';

/**
 * Lists what goes by a pool's size: replicas asked for; processor and memory of as many instances.
 */
export const SIZED_RESOURCES = ['replicas', 'cpu', 'memory'] as const;
export type SizedResource = (typeof SIZED_RESOURCES)[number];
export type SizedAmounts = Readonly<Record<SizedResource, number>>;

/**
 * Lists what a user can have only so much of: claimed sandboxes; pools; and, over all pools, what
 * goes by their size.
 */
export const QUOTA_RESOURCES = ['sandboxes', 'pools', ...SIZED_RESOURCES] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/**
 * A whole number for each, so that every store adds them up exactly: `cpu` in thousandths of a
 * core, `memory` in KiB. As a limit, Infinity is none.
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

/** The highest limit that can be set. */
export const HIGHEST_LIMIT: QuotaAmounts = {
  sandboxes: 1_000_000,
  pools: 100_000,
  replicas: 1_000_000,
  cpu: 1_000_000 * CPU_UNITS_PER_CORE,
  memory: 2 ** 50 / BYTES_PER_MEMORY_UNIT,
};

/**
 * Reads what a quantity allows, such as `16` or `500m` of cpu and `64Gi` of memory; undefined where
 * it is none, or beyond the highest limit.
 */
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

/** Writes a limit as a quantity, the way back from `sizeLimitOf`. */
export const sizeLimitText = (resource: keyof typeof NO_SIZE_LIMITS, units: number): string =>
  resource === 'cpu' ? formatCpu(units / CPU_UNITS_PER_CORE) : `${units}Ki`;

/** As it is told: in cores and bytes. */
export const plainAmount = (resource: QuotaResource, amount: number): number => {
  if (resource === 'cpu') return amount / CPU_UNITS_PER_CORE;
  return resource === 'memory' ? amount * BYTES_PER_MEMORY_UNIT : amount;
};

/** Limits of cpu and memory where nobody set any: none. */
export const NO_SIZE_LIMITS = {
  cpu: Number.POSITIVE_INFINITY,
  memory: Number.POSITIVE_INFINITY,
} as const;

/** One user's own limits; where one is left out the configured one holds. */
export interface UserQuota extends Tenant {
  readonly revision: Revision;
  readonly limits: Partial<QuotaAmounts>;
}

/** Counts what a pool takes of its owner's quota. */
export const amountsOfPool = ({
  replicas,
  definition,
}: Pick<PoolRecord, 'replicas' | 'definition'>): SizedAmounts => {
  const { cpu, memory } = amountsOfInstance(definition);
  return { replicas, cpu: replicas * cpu, memory: replicas * memory };
};

/** Counts how many more instances of a definition there is room for. */
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
