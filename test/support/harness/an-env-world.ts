import { openEnvs, type EnvParts } from '../../../src/daemon/envs.ts';
import { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';
import { VolumeDirectories } from '../../../src/embedded/driver/volume-directories.ts';
import type { EnvCopies } from '../../../src/contracts/fleet/env-copies.ts';
import type { EnvRecord } from '../../../src/model/envs/env.ts';
import type { RegistryCredentials } from '../../../src/model/pools/pool-source.ts';
import { SHARDS } from '../../../src/model/shards.ts';
import { SandboxTemplateSchema } from '../../../src/model/templates/template.ts';
import { claimSandbox } from '../../../src/actors/claim/claim-sandbox.ts';
import { groupMembers } from '../../../src/actors/env/commands/group-members.ts';
import { instanceTypes } from '../../../src/services/templates/instance-types.ts';
import { PoolRenewal } from '../../../src/actors/pool/commands/pool-renewal.ts';
import type { FirstMember } from '../../../src/actors/env/commands/env-members.ts';
import { deletePool } from '../../../src/actors/pool/commands/pools.ts';
import { QuotaLimits } from '../../../src/actors/pool/commands/quota-limits.ts';
import { syncPool } from '../../../src/actors/pool/commands/sync-pool.ts';
import { TemplateCatalog } from '../../../src/actors/pool/template-catalog.ts';
import { updatePool } from '../../../src/actors/pool/commands/update-pool.ts';
import { alice, aSupervisor } from './a-supervisor.ts';
import { MemoryEnvs } from '../fakes/memory-envs.ts';
import { MemoryQuotas } from '../fakes/memory-quotas.ts';
import { MemoryTemplates } from '../fakes/memory-templates.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { testClaimEnv } from '../builders/test-claim-env.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

export const aTemplate = (idleTimeout: string) =>
  SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: { containers: [{ name: 'main', image: 'host' }], idleTimeout },
  });

export interface EnvWorldOptions {
  /** Runs members; by default true. */
  readonly leads?: boolean;
  readonly pools?: number;
  readonly replicas?: number;
  /** In cores. */
  readonly cpu?: number;
  /** Envs of other clusters. */
  readonly copies?: EnvCopies;
  /** Existing envs, as after a restart. */
  readonly envs?: MemoryEnvs;
  readonly firstMembers?: readonly FirstMember[];
}

/**
 * Envs over a supervisor without processes, with a clock that tests move. Groups decide after
 * `size`.
 */
export const anEnvWorld = async (options: EnvWorldOptions = {}) => {
  const beside: { parts?: EnvParts } = {};
  const world = await aSupervisor({
    pool: { replicas: 0 },
    participant: {
      onShardAcquired: () => undefined,
      onShardReleased: () => undefined,
      claimed: (poolUid, last) => {
        beside.parts?.claimed(poolUid, last);
      },
      startFailed: (poolUid) => {
        beside.parts?.startFailed(poolUid);
      },
      poolChanged: (record) => {
        beside.parts?.poolChanged(record);
      },
    },
  });
  const { clock, coordination, history, pools, supervisor, driver } = world;
  const [envs, templateRecords] = [options.envs ?? new MemoryEnvs(), new MemoryTemplates()];
  const templates = new TemplateCatalog({ templates: templateRecords, clock });
  await templates.start();
  await templateRecords.create({
    name: 't',
    version: '1',
    createdAt: 1,
    document: aTemplate('1m'),
  });
  const kept: (readonly RegistryCredentials[])[] = [];
  const pullSecrets = {
    keep: async (_owner: unknown, registries: readonly RegistryCredentials[]) => {
      kept.push(registries);
    },
    forget: async () => {
      kept.push([]);
    },
  };
  const quotaLimits = new QuotaLimits({
    quotas: new MemoryQuotas(),
    clock,
    defaults: {
      sandboxes: 100,
      pools: options.pools ?? 50,
      replicas: options.replicas ?? 100,
      ...(options.cpu === undefined ? {} : { cpu: options.cpu * 1_000 }),
    },
  });
  const rendering = {
    templates,
    types: instanceTypes(undefined),
    volumes: new VolumeDirectories([]),
    driver,
  };
  const mirror = new EnvMirror({ envs, clock, log: quietLog });
  let serial = 0;
  const parts = openEnvs(mirror, {
    metrics: silentMetrics,
    ...rendering,
    parts: { clock, coordination, history, pullSecrets, records: { envs, pools } },
    log: quietLog,
    supervisor,
    quotaLimits,
    fleet: { clusterId: 'local', copies: options.copies },
    newUid: () => `u${(serial += 1)}`,
    firstMembers: options.firstMembers ?? [],
    changed: () => undefined,
  });
  beside.parts = parts;
  const renewal = new PoolRenewal({
    supervisor,
    clock,
    log: quietLog,
    coordination,
    quotaLimits,
    ...rendering,
  });
  await mirror.start();
  await parts.start();
  await pools.watch(({ record }) => {
    renewal.consider(record.uid);
  });
  const lead = (): void => {
    for (let shard = 0; shard < SHARDS; shard += 1) parts.members.lead(shard);
  };
  const size = (): void => {
    for (let shard = 0; shard < SHARDS; shard += 1) parts.groups.actors.lead(shard);
  };
  if (options.leads !== false) lead();
  const common = {
    ...rendering,
    supervisor,
    coordination,
    clock,
    quotaLimits,
    pullSecrets,
    envs: mirror,
    templateRecords,
  };
  return {
    ...world,
    ...parts.operations,
    envs,
    mirror,
    parts,
    members: parts.members,
    kept,
    lead,
    size,
    templateRecords,
    claimAs: claimSandbox({
      metrics: silentMetrics,
      ...common,
      claimEnv: testClaimEnv,
      demand: parts.demand,
      pendingRequests: world.pendingRequests,
      background: (_name, work) => {
        void work;
      },
    }),
    groupMembers: groupMembers({
      supervisor,
      demand: parts.demand,
      coordination,
      quotaLimits,
      clock,
    }),
    /** Longest idle first. */
    idle: (most: number) =>
      supervisor.index
        .createdBefore('idle', supervisor.pools.index.uidOf(alice.namespace, 'm') ?? '', {
          revision: '',
          moment: clock.now(),
        })
        .slice(0, most),
    env: (name = 'e') => envs.records.get(`${alice.namespace}/${name}`),
    pool: (name: string) => [...pools.records.values()].find((record) => record.name === name),
    made: async (overrides: EnvRecord['overrides'] = {}) =>
      await parts.operations.createEnv(alice, {
        name: 'e',
        templateRef: { name: 't' },
        mode: 'WarmPool',
        overrides,
        labels: {},
        annotations: {},
      }),
    updatePool: updatePool(common),
    deletePool: deletePool(common),
    syncPool: syncPool(common),
  };
};
