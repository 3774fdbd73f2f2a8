import { EnvMirror } from '../actors/runtime/record-mirror.ts';
import { EventFeed } from '../actors/runtime/event-feed.ts';
import { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { AuditTrail } from '../services/audit/audit-trail.ts';
import type { Config } from './config/config.ts';
import { readInstanceTypes } from './config/instance-types.ts';
import { sourceTerms } from './config/source-terms.ts';
import type { LevelledLog } from '../contracts/log.ts';
import { ControlServer } from './control/control-server.ts';
import { openApprovals, type ApprovalsOfDaemon } from './assembly/approvals.ts';
import { webhookCommands } from './commands/webhook-commands.ts';
import { openConsole } from './assembly/console.ts';
import { openAudit } from './audit.ts';
import { openEnvs, type EnvParts } from './envs.ts';
import { openFleet, type FleetEnding } from './fleet/fleet.ts';
import { openMetrics, registerGauges, type MetricsParts } from './metrics.ts';
import { Participants } from './participants.ts';
import { policyOf } from './policy.ts';
import type { RunnableDaemon } from './process/run-daemon.ts';
import { firstMembers, makeDefaultEnvs } from './default-env.ts';
import { openTracing } from './tracing.ts';
import { measuredDriver } from './metrics/measured-driver.ts';
import { renderDefinition } from '../model/pools/render-definition.ts';
import { ApiKeyMirror } from '../services/keys/api-keys.ts';
import { PromotedTrust } from '../services/keys/promoted-trust.ts';
import { grantPools } from '../actors/pool/commands/grant-pools.ts';
import { instanceTypes } from '../services/templates/instance-types.ts';
import { loadTemplates } from '../services/templates/load-templates.ts';
import { PoolRenewal } from '../actors/pool/commands/pool-renewal.ts';
import { quotaDefaults, QuotaLimits } from '../actors/pool/commands/quota-limits.ts';
import { TemplateCatalog } from '../actors/pool/template-catalog.ts';
import { openTls } from './listening/http-terms.ts';
import { openListeners, type Listeners } from './listening/listeners.ts';
import { idAt } from './ids.ts';
import { openStatuses, type StatusesOfDaemon } from './statuses.ts';
import { openedAssembly } from './opened-assembly.ts';
import { operationsOf, type OperationParts } from './operations.ts';

export interface DaemonTerms {
  readonly log: LevelledLog;
  readonly replica: string;
  /** Explicitly configured listeners, without which the daemon does not start. */
  readonly given?: ReadonlySet<'metrics' | 'compatibleApi'>;
  /** Never waits for the reader of standard output. */
  readonly auditCopy?: (text: string) => void;
  /** No effect after `createDaemon` has resolved. */
  readonly stopped: AbortSignal;
}

/**
 * The composition root: the only place that chooses a daemon's parts. `start` resolves when
 * requests are answered. `stop` drains requests in progress, and leaves the sandboxes running.
 */
export const createDaemon = async (
  config: Config,
  process: DaemonTerms,
): Promise<RunnableDaemon> => {
  const { log, replica } = process;
  const types = instanceTypes(
    config.instanceTypes.provider === 'none'
      ? undefined
      : readInstanceTypes(config.instanceTypes.file),
  );
  const measuring = openMetrics(config, log, process.given?.has('metrics') ?? false);
  const { metrics } = measuring;
  const tls = openTls(config.tls, log);
  const opened = await openedAssembly(config, { ...process, types, metrics }, tls?.identity);
  const parts = { ...opened, driver: measuredDriver(opened.driver, metrics) };
  const { clock, driver, coordination, history, records } = parts;
  const audit = openAudit(config, { ...process, parts });
  const people = openConsole(config, { parts, log, audit, addressOf: () => life.address });
  const trust = new PromotedTrust({
    clock,
    hasManagers: config.fleet.managers.length > 0,
    aloneMs: config.fleet.promotedKeysAlone,
  });
  const apiKeys = new ApiKeyMirror({
    apiKeys: records.apiKeys,
    clock,
    revocations: coordination,
    trust,
  });
  const quotaLimits = new QuotaLimits({
    quotas: records.quotas,
    clock,
    defaults: quotaDefaults(config.quotas),
  });
  const templates = new TemplateCatalog({ templates: records.templates, clock });
  const events = new EventFeed({ clock, log, history, coordination });
  const participants = new Participants();
  const supervisor = new Supervisor({
    driver,
    pools: records.pools,
    passwords: {
      pullSecrets: parts.pullSecrets,
      isEnv: async (uid) =>
        envs.mirror.get(uid) !== undefined ||
        (await records.envs.list()).some((env) => env.uid === uid),
    },
    history,
    coordination,
    clock,
    watchers: { log, metrics, events },
    policy: policyOf(config, parts),
    newId: () => idAt(clock.now()),
    sharding: {
      replica,
      participant: participants,
    },
  });
  const statuses: StatusesOfDaemon | undefined = openStatuses(
    parts.statuses,
    () => supervisor,
    () => envs,
  );
  const rendering = {
    templates,
    types,
    volumes: parts.volumes,
    driver,
    terms: sourceTerms(config),
  };
  const renewal = new PoolRenewal({
    supervisor,
    clock,
    log,
    coordination,
    quotaLimits,
    ...rendering,
  });
  const fleet = openFleet(config, {
    parts,
    log,
    metrics,
    replica,
    apiKeys,
    templates,
    trust,
    audit,
  });
  const envs: EnvParts = openEnvs(new EnvMirror({ envs: records.envs, clock, log }), {
    parts,
    log,
    metrics,
    supervisor,
    quotaLimits,
    ...rendering,
    fleet: { clusterId: config.clusterId, copies: fleet.copies },
    newUid: () => idAt(clock.now()),
    firstMembers: parts.makesDefaultPool ? firstMembers(config) : [],
    changed: statuses?.envChanged,
  });
  const { runtime } = supervisor;
  const approvals: ApprovalsOfDaemon = openApprovals(config, {
    parts,
    log,
    runtime,
    severalDecide: () => people?.severalDecide() ?? false,
    metrics,
    events,
  });
  participants.join([
    { onShardAcquired: (shard) => renewal.lead(shard) },
    ...(statuses ? [statuses] : []),
    envs,
    approvals.participant,
    { caughtUp: () => records.templates.caughtUp() },
  ]);
  const life = { replica, started: false, stopping: false, address: '' };
  const tracer = await openTracing(config, { log, clock, replica });
  const operations = operationsOf(config, log, {
    parts,
    tls,
    audit,
    life,
    mirrors: { apiKeys, quotaLimits, templates, types, fleet: fleet.operations },
    supervisor,
    events,
    envs,
    approvals,
    metrics,
  });
  registerGauges(metrics, {
    supervisor,
    envs,
    approvals,
    readiness: operations.readiness,
    audit,
    apiKeys,
    tls,
    clock,
  });
  const listeners = openListeners(config, {
    ...{ operations, clock, approvals, people, fleet },
    watchers: { log, metrics, tracer, traceScope: parts.traceScope, audit },
    tls: tls?.identity,
    compatibleGiven: process.given?.has('compatibleApi') ?? false,
  });
  const control = new ControlServer({
    dataDir: config.dataDir,
    backup: parts.backup,
    commands: {
      ...people?.commands,
      ...fleet.commands,
      ...webhookCommands(approvals.webhooks, audit),
    },
    log,
    audit,
  });

  return {
    failed: parts.failed,
    start: async () => {
      await listeners.requireFree();
      const metricsAddress = await measuring.start();
      await parts.start();
      await audit?.start();
      await Promise.all([apiKeys.start(), quotaLimits.start()]);
      const firstStart = apiKeys.size === 0;
      await loadTemplates({
        source: parts.templates,
        templates: records.templates,
        clock,
        log,
        check: (definition) => driver.check(definition),
      });
      templates.follow(({ record }) => {
        renewal.template(record.name);
      });
      await templates.start();
      parts.onOutdated((why) => {
        standBy(why, supervisor, log);
      });
      parts.grantBy(grantPools({ supervisor, coordination, clock, quotaLimits }));
      await Promise.all([envs.mirror.start(), approvals.start(), fleet.know()]);
      await supervisor.start();
      await envs.start();
      await records.pools.watch(({ kind, record }) => {
        if (kind !== 'put') return;
        renewal.consider(record.uid);
        statuses?.poolChanged(record);
      });
      for (const { document } of templates.list(TEMPLATE_LIMIT))
        driver.expect(renderDefinition(document.spec));
      const { isolation, warnings } = driver.describe();
      for (const warning of warnings) log.warn({ isolation, warning }, 'isolation-warning');
      if (firstStart && parts.makesDefaultPool)
        await makeDefaultEnvs({
          config,
          pools: supervisor.pools.index,
          hasTemplate: (name) => templates.get(name) !== undefined,
          operations,
        });
      await parts.ensureFirstKeys(apiKeys);
      await fleet.start();
      await control.start();
      const { host, port, compatibleAddress } = await listeners.start();
      tls?.start(clock, (identity) => {
        listeners.renew(identity);
      });
      fleet.link(listeners.accept);
      life.started = true;
      const protocol = config.tls.certFile === undefined ? 'http' : 'https';
      const address = `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`;
      life.address = address;
      const consoleLink =
        firstStart && parts.makesDefaultPool ? await people?.ownersLinkAt(address) : undefined;
      return { address, firstStart, consoleLink, metricsAddress, compatibleAddress };
    },
    stop: async () => {
      life.stopping = true;
      tls?.stop();
      fleet.ending.leave();
      renewal.stop();
      envs.stop();
      approvals.stop();
      listeners.leave();
      for (const waiting of [supervisor.idle.lines, supervisor.launches]) waiting.stop();
      if (life.started)
        await new Promise<void>((resolve) => {
          clock.at(clock.now() + config.shutdownDelay, resolve);
        });
      const stopped = await stopAll({
        parts,
        supervisor,
        events,
        listeners,
        fleet: fleet.ending,
        control,
        measuring,
        audit,
      });
      await tracer?.stop();
      return stopped;
    },
  };
};

/** Leads nothing while the cluster has objects of another version. */
const standBy = (
  why: string | undefined,
  supervisor: Supervisor,
  log: DaemonTerms['log'],
): void => {
  if (why === undefined) {
    log.info({}, 'leading-again');
    supervisor.standUp();
    return;
  }
  log.error({ why }, 'not-leading');
  supervisor.standDown();
};

interface Served extends Pick<OperationParts, 'parts' | 'supervisor' | 'events'> {
  readonly listeners: Listeners;
  readonly fleet: Pick<FleetEnding, 'drained' | 'stop'>;
  readonly control: ControlServer;
  readonly measuring: MetricsParts;
  readonly audit: AuditTrail | undefined;
}

const stopAll = async ({
  parts,
  supervisor,
  events,
  listeners,
  fleet,
  control,
  measuring,
  audit,
}: Served) => {
  const sandboxesLeft = supervisor.actors.size;
  await Promise.all([listeners.stop(STOP_GRACE_MS), fleet.drained(STOP_GRACE_MS), control.stop()]);
  fleet.stop();
  await supervisor.stop(STOP_GRACE_MS);
  await events.stop();
  await audit?.stop();
  await parts.stop();
  await measuring.stop();
  return { sandboxesLeft };
};

const STOP_GRACE_MS = 3_000;
const TEMPLATE_LIMIT = 256;
