import { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';
import { openEnvs, type EnvParts } from '../../../src/daemon/envs.ts';
import { VolumeDirectories } from '../../../src/embedded/driver/volume-directories.ts';
import { claimSandbox } from '../../../src/actors/claim/claim-sandbox.ts';
import { instanceTypes } from '../../../src/services/templates/instance-types.ts';
import { QuotaLimits } from '../../../src/actors/pool/commands/quota-limits.ts';
import { TemplateCatalog } from '../../../src/actors/pool/template-catalog.ts';
import { aCoordination } from '../fakes/a-coordination.ts';
import { aTemplate } from './an-env-world.ts';
import { MemoryEnvs } from '../fakes/memory-envs.ts';
import { MemoryQuotas } from '../fakes/memory-quotas.ts';
import { MemoryTemplates } from '../fakes/memory-templates.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { Life, SharedRecords } from '../fakes/shared-records.ts';
import { aReplica, sharedStores } from './shared-supervisors.ts';
import { testClaimEnv } from '../builders/test-claim-env.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

export type EnvReplica = Awaited<ReturnType<typeof anEnvReplica>>;

export const envStores = async ({
  replicas = 100,
  ...options
}: NonNullable<Parameters<typeof sharedStores>[0]> & { readonly replicas?: number } = {}) => {
  const stores = await sharedStores(options);
  const [envs, templates] = [new MemoryEnvs(), new MemoryTemplates()];
  await templates.create({ name: 't', version: '1', createdAt: 1, document: aTemplate('1h') });
  let serial = 0;
  return {
    ...stores,
    envs,
    templates,
    coordination: aCoordination(stores.clock),
    quota: { sandboxes: 100, pools: 50, replicas },
    newUid: () => `u${(serial += 1)}`,
  };
};

/** With its own view of the shared stores; leads on request. */
export const anEnvReplica = async (shared: Awaited<ReturnType<typeof envStores>>) => {
  const life = new Life();
  const clock = life.clock(shared.clock);
  const [pools, envs] = [
    new SharedRecords(shared.pools, life),
    new SharedRecords(shared.envs, life),
  ];
  const beside: { parts?: EnvParts } = {};
  const replica = await aReplica({ ...shared, clock, pools }, shared.coordination, {
    participant: {
      onShardAcquired: (shard) => {
        beside.parts?.onShardAcquired(shard);
      },
      onShardReleased: (shard) => {
        beside.parts?.onShardReleased(shard);
      },
      caughtUp: async () => {
        await beside.parts?.caughtUp();
      },
      claimed: (poolUid, last) => {
        beside.parts?.claimed(poolUid, last);
      },
      startFailed: (poolUid) => {
        beside.parts?.startFailed(poolUid);
      },
    },
  });
  const { supervisor, coordination, driver, pendingRequests } = replica;
  const quotaLimits = new QuotaLimits({
    quotas: new MemoryQuotas(),
    clock,
    defaults: shared.quota,
  });
  const templates = new TemplateCatalog({ templates: shared.templates, clock });
  await templates.start();
  const mirror = new EnvMirror({ envs, clock, log: quietLog });
  const rendering = {
    templates,
    types: instanceTypes(undefined),
    volumes: new VolumeDirectories([]),
    driver,
  };
  const parts = openEnvs(mirror, {
    metrics: silentMetrics,
    ...rendering,
    parts: {
      clock,
      coordination,
      history: shared.history,
      pullSecrets: { keep: async () => undefined, forget: async () => undefined },
      records: { envs, pools },
    },
    log: quietLog,
    supervisor,
    quotaLimits,
    fleet: { clusterId: 'local' },
    newUid: shared.newUid,
    firstMembers: [],
    changed: () => undefined,
  });
  beside.parts = parts;
  await mirror.start();
  await parts.start();
  const claim = claimSandbox({
    metrics: silentMetrics,
    envs: parts.mirror,
    supervisor,
    driver,
    claimEnv: testClaimEnv,
    coordination,
    clock,
    pendingRequests,
    quotaLimits,
    demand: parts.demand,
    background: (_name, work) => {
      void work;
    },
  });
  return {
    supervisor,
    parts,
    driver,
    pools,
    envs,
    claim,
    lead: replica.lead,
    follow: replica.die,
    /** As by kill -9. */
    die: (): void => {
      life.end();
      replica.die();
      driver.lag();
      parts.demand.stop();
    },
    /** Changes become visible at `catchUp`. */
    lag: (): void => {
      for (const source of [driver, pools, envs]) source.lag();
    },
    catchUp: (): void => {
      for (const source of [driver, pools, envs]) source.catchUp();
    },
  };
};
