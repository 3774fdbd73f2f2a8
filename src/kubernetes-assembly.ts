import { readFileSync } from 'node:fs';
import type { Assembly, AssemblyTerms } from './assembly.ts';
import type { Config } from './config.ts';
import type { OngoingTrace } from './contracts/tracing.ts';
import { apiServer } from './k8s/api-client.ts';
import { BoundVolumes } from './k8s/bound-volumes.ts';
import { type AccessSource, readClusterAccess } from './k8s/cluster-access.ts';
import { PodStreams } from './k8s/pod-streams.ts';
import { PodPullSecrets } from './k8s/pull-secrets.ts';
import { KubernetesRecordStore } from './k8s/record-store.ts';
import { KubernetesSandboxDriver } from './k8s/sandbox-driver.ts';
import { ServerClock } from './k8s/server-clock.ts';
import { usageRecords } from './k8s/usage-records.ts';
import { AsyncScope } from './model/async-scope.ts';
import { namespaceOf, teamOf } from './namespaces.ts';
import { redisCoordination } from './redis/coordination.ts';
import { RedisHistory } from './redis/history.ts';
import type { RedisSettings } from './redis/settings.ts';
import { ensureAdminKey, readSharedSecrets } from './shared-secrets.ts';
import { version } from './version.ts';

/**
 * One of several replicas: sandboxes are Pods, the API server is the truth, Redis holds what is shared and short-lived.
 * Rejects where the configuration can't be used or the API server does not answer.
 */
export const openKubernetes = async (config: Config, { log, replica, types, metrics }: AssemblyTerms): Promise<Assembly> => {
  const secrets = readSharedSecrets(config.secretsDir ?? '');
  const settings = redisSettings(config.redis);
  const access = await readClusterAccess(accessSource(config.kubernetes), log);
  const clock = new ServerClock();
  const traceScope = new AsyncScope<OngoingTrace>();
  const api = apiServer({ access, version: version(), clock, metrics, traceScope });
  const background = api.lane('background');
  await background.get('/version').catch(async (error: unknown) => { // from here on it is known what time it is
    await api.close();
    throw new Error(`the API server at ${access.server.origin} can't be used: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  });
  const outdated = new Outdated();
  const streams = new PodStreams({ access, api: api.lane('claims'), log, version: version() });
  const driver = new KubernetesSandboxDriver({
    api, streams, clock, log, metrics, outdated: outdated.note,
    pods: { runAsUser: config.kubernetes.runAsUser, terminationGraceSeconds: Math.ceil(config.kubernetes.terminationGrace / 1_000) },
  });
  const records = new KubernetesRecordStore({
    api, log, metrics, outdated: outdated.note, clusterId: config.clusterId, now: () => clock.now(), instanceType: (name) => types.get(name), check: (definition) => { driver.check(definition); }, teamOf: (namespace) => teamOf(config.namespacePattern, namespace),
  });
  const redis = redisCoordination({ settings, replica, usage: usageRecords(background, records.pools), clock, log, metrics });
  const history = new RedisHistory({ settings, clock, log, metrics, retentionMs: config.history.retention });
  return {
    clock, driver, records, history, traceScope,
    coordination: redis.coordination,
    templates: { read: async () => [] },
    pullSecrets: new PodPullSecrets(background),
    volumes: new BoundVolumes({ api: background, clock, provided: config.volumes.provider !== 'none' }),
    pepper: secrets.pepper,
    recentAudit: redis.recentAudit,
    ensureFirstKeys: async (apiKeys) => {
      const tenant = { namespace: namespaceOf(config.namespacePattern, 'default'), team: 'default', user: 'default' };
      await ensureAdminKey({ apiKeys, secrets, clock, lifetimeMs: config.keys.maxLifetime, tenant });
    },
    startsAtOnce: 128, // a Pod waits for its node most of the time
    makesDefaultPool: false,
    backup: async () => { throw new Error('on Kubernetes the truth is in the API server: back up its etcd, and the append-only file of Redis'); },
    reflectors: () => [...driver.reflectors(), ...records.reflectors()],
    problems: () => [...new Set([...records.problems, ...(outdated.why === undefined ? [] : [outdated.why])])],
    onOutdated: (report) => { outdated.follow(report); },
    failed: new Promise<Error>(() => undefined),
    start: async () => {
      await Promise.all([redis.start(), history.start(), records.start()]);
    },
    stop: async () => {
      await driver.stop();
      await records.stop();
      await redis.stop();
      await history.stop();
      await api.close();
    },
  };
};

/** What a later version wrote that this one does not understand. It stays so: who leads then is the later version's. */
class Outdated {
  why: string | undefined;
  #report: (why: string) => void = () => undefined;

  readonly note = (why: string): void => {
    if (this.why !== undefined) return;
    this.why = why;
    this.#report(why);
  };

  follow(report: (why: string) => void): void {
    this.#report = report;
    if (this.why !== undefined) report(this.why);
  }
}

const accessSource = ({ kubeconfig, context }: Config['kubernetes']): AccessSource =>
  ({ ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(context === undefined ? {} : { context }) });

const redisSettings = ({ urls, mode, username, passwordFile, caFile, prefix }: Config['redis']): RedisSettings => ({
  urls, cluster: mode === 'cluster', prefix,
  ...(username === undefined ? {} : { username }),
  ...(passwordFile === undefined ? {} : { password: readFileSync(passwordFile, 'utf8').trim() }),
  ...(caFile === undefined ? {} : { ca: readFileSync(caFile, 'utf8') }),
});
