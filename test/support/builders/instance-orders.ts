import { v7 } from 'uuid';
import type { LaunchOrder, Claim } from '../../../src/model/sandbox.ts';
import type {
  ContainerDefinition,
  InstanceDefinition,
} from '../../../src/model/templates/template.ts';
import type { Tenant } from '../../../src/model/tenant.ts';

export const ALICE: Tenant = { namespace: 'alpha', team: 'alpha', user: 'alice' };

export const aContainer = (part: Partial<ContainerDefinition> = {}): ContainerDefinition => ({
  name: 'main',
  image: 'host',
  argv: ['sleep', 'infinity'],
  env: {},
  workingDir: '/home/sandbox',
  cpuCores: 1,
  memoryBytes: 128 * 2 ** 20,
  ports: {},
  ...part,
});

export const aDefinition = (
  container: Partial<ContainerDefinition> = {},
  part: Partial<InstanceDefinition> = {},
): InstanceDefinition => ({
  containers: [aContainer(container)],
  network: 'none',
  startupTimeoutMs: 10_000,
  idleTimeoutMs: 0,
  maxLifetimeMs: 0,
  cpu: '1',
  memory: '128Mi',
  ...part,
});

export const anOrder = (
  definition: InstanceDefinition = aDefinition(),
  id: string = v7(),
): LaunchOrder => ({
  record: {
    id,
    poolUid: 'pool-uid',
    poolName: 'default',
    poolOwner: ALICE,
    createdAt: 1_700_000_000_000,
    updateRevision: 'r1',
    cpu: definition.cpu,
    memory: definition.memory,
    containerImages: { main: 'host' },
    startupTimeoutMs: definition.startupTimeoutMs,
  },
  definition,
});

export const aClaim = (part: Partial<Claim> = {}): Claim => ({
  owner: ALICE,
  claimedAt: 1_700_000_001_000,
  idleTimeoutMs: 0,
  maxLifetimeMs: 0,
  ...part,
});

export const permitted = (): boolean => true;
