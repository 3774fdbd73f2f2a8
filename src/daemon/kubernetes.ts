import { readFileSync } from 'node:fs';
import type { Assembly, AssemblyTerms } from './assembly/assembly.ts';
import type { Config } from './config/config.ts';
import { sourceTerms } from './config/source-terms.ts';
import type { Grants } from '../contracts/grants.ts';
import type { OngoingTrace } from '../contracts/tracing.ts';
import { apiServer } from '../k8s/api/api-client.ts';
import { readAgents } from '../k8s/sandboxes/pods/agent-programs.ts';
import { BoundVolumes } from '../k8s/sandboxes/bound-volumes.ts';
import { type AccessSource, readClusterAccess } from '../k8s/api/cluster-access.ts';
import { PodStreams } from '../k8s/streams/pod-streams.ts';
import { PodPullSecrets } from '../k8s/records/pull-secrets.ts';
import { KubernetesRecordStore } from '../k8s/records/record-store.ts';
import type { PodSettings } from '../k8s/sandboxes/pods/pod-resource.ts';
import { KubernetesSandboxDriver } from '../k8s/sandboxes/sandbox-driver.ts';
import { InstalledDefinitions } from '../k8s/records/installed-definitions.ts';
import { ObjectEvents } from '../k8s/status/object-events.ts';
import { StatusWriter } from '../k8s/status/status-writer.ts';
import { Seals } from '../k8s/api/seals.ts';
import { ServerClock } from '../k8s/api/server-clock.ts';
import { untilAnswering } from '../k8s/api/until-answering.ts';
import { usageRecords } from '../k8s/records/usage-records.ts';
import { AsyncScope } from '../lib/async-scope.ts';
import type { PoolRecord } from '../model/pools/pool.ts';
import { unavailable } from '../model/refusals.ts';
import { namespaceOf, teamsOf } from './assembly/namespaces.ts';
import { redisCoordination } from '../redis/coordination.ts';
import { RedisHistory } from '../redis/history.ts';
import type { RedisSettings } from '../redis/settings.ts';
import { ensureAdminKey, readSharedSecrets, sealKeyOf } from './shared-secrets.ts';
import { version } from './process/version.ts';

/**
 * Sandboxes are Pods, the API server holds the records, and Redis shared, short-lived state. Waits
 * for the API server; rejects if it refuses the daemon.
 */
export const openKubernetes = async (
  config: Config,
  { log, replica, types, metrics, waits, stopped }: AssemblyTerms,
): Promise<Assembly> => {
  const secrets = readSharedSecrets(config.secretsDir ?? '');
  const settings = redisSettings(config.redis);
  const access = await readClusterAccess(accessSource(config.kubernetes), log);
  const clock = new ServerClock();
  const traceScope = new AsyncScope<OngoingTrace>();
  const api = apiServer({ access, version: version(), clock, metrics, traceScope });
  const background = api.lane('background');
  await untilAnswering({
    api: background,
    server: access.server.origin,
    log,
    waits,
    stopped,
  }).catch(async (error: unknown) => {
    await api.close();
    throw error;
  }); // from here on, the clock follows the API server's time
  const outdated = new Outdated();
  const seals = new Seals({ key: sealKeyOf(secrets) });
  const ownersOf = teamsOf(config.namespacePattern);
  const streams = new PodStreams({ access, api: api.lane('claims'), log, version: version() });
  const volumes = new BoundVolumes({
    api: background,
    clock,
    provided: config.volumes.provider !== 'none',
  });
  const driver = new KubernetesSandboxDriver({
    api,
    volumes,
    seals,
    teamOf: ownersOf,
    streams,
    clock,
    log,
    metrics,
    outdated: outdated.note,
    pods: podSettings(config.kubernetes),
  });
  const granting = new LateGrants();
  const records = new KubernetesRecordStore({
    grants: granting,
    api,
    log,
    metrics,
    seals,
    outdated: outdated.note,
    now: () => clock.now(),
    lookups: {
      clusterId: config.clusterId,
      instanceType: (name) => types.get(name),
      terms: sourceTerms(config),
      check: (definition) => {
        driver.check(definition);
      },
      teamOf: ownersOf,
    },
  });
  const definitions = new InstalledDefinitions({
    api: background,
    clock,
    log,
    outdated: outdated.note,
  });
  const statuses = new StatusWriter({
    api,
    clock,
    log,
    objects: records.published,
    events: new ObjectEvents({ api, clock, log, replica }),
  });
  const redis = redisCoordination({
    settings,
    replica,
    usage: usageRecords(background, records.pools),
    keptAnswers: config.keptAnswers,
    clock,
    log,
    metrics,
  });
  const history = new RedisHistory({
    settings,
    clock,
    log,
    metrics,
    bounds: config.history,
    retentionMs: config.history.retention,
  });
  return {
    clock,
    driver,
    records,
    history,
    traceScope,
    coordination: redis.coordination,
    templates: { read: async () => [] },
    pullSecrets: new PodPullSecrets(background),
    volumes,
    pepper: secrets.pepper,
    recentAudit: redis.recentAudit,
    deadLetters: redis.deadLetters,
    ensureFirstKeys: async (apiKeys) => {
      const tenant = {
        namespace: namespaceOf(config.namespacePattern, 'default'),
        team: 'default',
        user: 'default',
      };
      await ensureAdminKey({
        apiKeys,
        secrets,
        clock,
        lifetimeMs: config.keys.maxLifetime,
        tenant,
      });
    },
    startsAtOnce: 128, // a starting Pod mostly waits for its node
    makesDefaultPool: false,
    backup: async () => {
      throw new Error(
        "on Kubernetes the state is in the API server: back up its etcd, and Redis's " +
          'append-only file',
      );
    },
    reflectors: () => [...driver.reflectors(), ...records.reflectors()],
    warnings: () => [...history.warnings(), ...definitions.warnings()],
    problems: () => [
      ...new Set([...records.problems, ...(outdated.why === undefined ? [] : [outdated.why])]),
    ],
    statuses,
    grantBy: (grants) => {
      granting.by = grants;
    },
    onOutdated: (report) => {
      outdated.follow(report);
    },
    failed: new Promise<Error>(() => undefined),
    start: async () => {
      await definitions.start();
      await Promise.all([redis.start(), history.start(), records.start()]);
    },
    stop: async () => {
      definitions.stop();
      statuses.stop();
      await driver.stop();
      await records.stop();
      await redis.stop();
      await history.stop();
      await api.close();
    },
  };
};

const podSettings = (settings: Config['kubernetes']): PodSettings => ({
  runAsUser: settings.runAsUser,
  runtimeClassName: settings.runtimeClassName,
  registry: settings.registry,
  agents: readAgents(),
  labels: Object.fromEntries(
    settings.podLabels.map((text) => text.split('=', 2) as [string, string]),
  ),
  terminationGraceSeconds: Math.ceil(settings.terminationGrace / 1_000),
  evictionGraceSeconds: Math.ceil(settings.evictionGrace / 1_000),
  protected: settings.protectSandboxes === 'on',
});

/** Until the grants exist, every request fails as unavailable. */
class LateGrants implements Grants<PoolRecord> {
  by: Grants<PoolRecord> | undefined;

  async ask(
    ...[next, before]: Parameters<Grants<PoolRecord>['ask']>
  ): ReturnType<Grants<PoolRecord>['ask']> {
    if (!this.by) throw unavailable('quotas cannot be granted yet');
    return await this.by.ask(next, before);
  }
}

/**
 * Objects of a later version, and definitions that would truncate our own. While there is any,
 * another version leads.
 */
class Outdated {
  readonly #objects = new Map<string, string>();
  #report: (why: string | undefined) => void = () => undefined;

  get why(): string | undefined {
    const [first] = this.#objects;
    return first && `${first.join(' ')}; this replica is sandpool ${version()}`;
  }

  readonly note = (object: string, why: string | undefined): void => {
    const before = this.#objects.size;
    if (why === undefined) this.#objects.delete(object);
    else this.#objects.set(object, why);
    if ((before === 0) !== (this.#objects.size === 0)) this.#report(this.why);
  };

  follow(report: (why: string | undefined) => void): void {
    this.#report = report;
    if (this.why !== undefined) report(this.why);
  }
}

const accessSource = ({ kubeconfig, context }: Config['kubernetes']): AccessSource => ({
  kubeconfig,
  context,
});

const redisSettings = ({
  urls,
  mode,
  username,
  passwordFile,
  caFile,
  prefix,
}: Config['redis']): RedisSettings => ({
  urls,
  cluster: mode === 'cluster',
  prefix,
  username,
  password: passwordFile === undefined ? undefined : readFileSync(passwordFile, 'utf8').trim(),
  ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'),
});
