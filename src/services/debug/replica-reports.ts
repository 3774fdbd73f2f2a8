import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { WebhookReport } from '../../model/approvals/webhook-report.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { DriverReport, QueuesReport, ReflectorsReport } from './debug-operations.ts';

export interface ReplicaReportsDeps {
  readonly supervisor: Supervisor;
  readonly driver: Pick<SandboxDriver, 'describe'>;
  readonly coordination: Pick<Coordination, 'lease'>;
  readonly reflectors: () => readonly MirrorReport[];
  readonly webhooks: () => readonly WebhookReport[];
  readonly replica: string;
}

export const queuesReport = ({
  supervisor,
  coordination,
  webhooks,
  replica,
}: ReplicaReportsDeps): QueuesReport => ({
  replica,
  shards: supervisor.shards.map((shard) => ({
    shard,
    epoch: coordination.lease(shard)?.epoch ?? 0,
  })),
  outboxes: {
    sandboxesAndPools: supervisor.runtime.outbox.report('supervisor'),
    members: supervisor.runtime.outbox.report('members'),
    groups: supervisor.runtime.outbox.report('groups'),
  },
  deadlines: supervisor.runtime.armed,
  claimsWaiting: supervisor.idle.lines.size,
  actors: {
    sandboxes: supervisor.actors.size,
    pools: supervisor.pools.actors.size,
    rebuilt: supervisor.actors.rebuilds.count,
  },
  webhooks: webhooks(),
});

export const driverReport = ({ driver, replica }: ReplicaReportsDeps): DriverReport => {
  const { isolation, warnings, problems, work = {} } = driver.describe();
  return { replica, isolation, warnings, problems, work };
};

export const reflectorsReport = ({
  reflectors,
  replica,
}: ReplicaReportsDeps): ReflectorsReport => ({ replica, reflectors: reflectors() });
