import { tellOfApprovals } from '../../actors/approval/approval-events.ts';
import { ApprovalHost } from '../../actors/approval/approval-host.ts';
import type { ActorRuntime } from '../../actors/runtime/actor-runtime.ts';
import type { ShardParticipant } from '../../actors/runtime/shard-participant.ts';
import type { Config } from '../config/config.ts';
import type { EventSink } from '../../actors/runtime/event-feed.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { APPROVAL_STATUSES } from '../../model/approvals/approval.ts';
import type { Log } from '../../contracts/log.ts';
import { heldSubject } from '../../http/corridor/held-subject.ts';
import type { CorridorDeps } from '../../http/corridor/corridor.ts';
import { approvalParts, type ApprovalParts } from '../../services/approvals/approval-parts.ts';
import { expireApproval, settleApproval } from '../../services/approvals/approval-writer.ts';
import type { Operations } from '../../services/operations.ts';
import type { Webhooks } from '../../services/webhooks/webhooks.ts';
import type { Assembly } from './assembly.ts';
import { openWebhooks } from './webhooks.ts';

export interface ApprovalsOfDaemon extends ApprovalParts {
  /** Undefined without rules. */
  readonly gating: (operations: Operations) => CorridorDeps['gating'];
  readonly host: ApprovalHost;
  readonly participant: ShardParticipant;
  readonly webhooks: Webhooks | undefined;
  start(): Promise<void>;
  stop(): void;
}

interface GivenToApprovals {
  readonly parts: Pick<Assembly, 'clock' | 'pepper' | 'coordination' | 'deadLetters'> & {
    readonly records: Pick<Assembly['records'], 'approvals'>;
  };
  readonly log: Log;
  readonly runtime: ActorRuntime;
  readonly metrics: Metrics;
  readonly events: EventSink;
  readonly severalDecide: () => boolean;
}

export const openApprovals = (
  config: Config,
  { parts, log, runtime, severalDecide, metrics, events }: GivenToApprovals,
): ApprovalsOfDaemon => {
  const { approvals: settings } = config;
  const { clock, records, pepper } = parts;
  const made = approvalParts({
    approvals: records.approvals,
    clock,
    log,
    pepper,
    rules: settings.rules,
    terms: {
      pendingMs: settings.pendingFor,
      grantMs: settings.grantFor,
      sessionMs: settings.sessionFor,
    },
    severalDecide,
  });
  const host = new ApprovalHost({
    runtime,
    approvals: made.mirror,
    grantMs: settings.grantFor,
    kept: settings.kept,
    expire: expireApproval(made.mirror, () => clock.now()),
    settle: settleApproval(made.mirror),
  });
  readGauges(metrics, made, () => clock.now());
  const leads = (shard: number): boolean => host.actors.leads(shard);
  const webhooks = openWebhooks(config, { parts, log, metrics, leads });
  return {
    ...made,
    host,
    webhooks,
    participant: participantOf(made, host, webhooks),
    gating: (operations) =>
      settings.rules.length === 0
        ? undefined
        : { gate: made.gate, subjectOf: heldSubject(operations) },
    start: async () => {
      await made.mirror.start();
      host.start();
      tellOfApprovals({ approvals: made.mirror, events, clock, leads });
      if (webhooks)
        made.mirror.follow(({ kind, record }) => {
          if (kind === 'put') webhooks.note(record);
        });
    },
    stop: () => {
      host.actors.stop();
      webhooks?.stop();
    },
  };
};

const participantOf = (
  { mirror }: Pick<ApprovalParts, 'mirror'>,
  host: ApprovalHost,
  webhooks: Webhooks | undefined,
): ShardParticipant => ({
  onShardAcquired: (shard) => {
    host.actors.lead(shard);
    webhooks?.lead(shard);
  },
  onShardReleased: (shard) => {
    host.actors.follow(shard);
  },
  caughtUp: () => mirror.caughtUp(),
});

const AGES = [
  ['under_1m', 60_000],
  ['under_5m', 300_000],
  ['over_5m', Number.POSITIVE_INFINITY],
] as const;

const readGauges = (
  metrics: Metrics,
  { mirror, gate }: Pick<ApprovalParts, 'mirror' | 'gate'>,
  now: () => number,
): void => {
  const ages = (): readonly number[] =>
    mirror
      .oldest('pending', Number.MAX_SAFE_INTEGER)
      .filter(({ expiresAt }) => expiresAt > now())
      .map(({ createdAt }) => now() - createdAt);
  metrics.read('sandpool_approvals_pending', () =>
    AGES.map(([age, most], at) => ({
      labels: { age },
      value: ages().filter((each) => each < most && each >= (AGES[at - 1]?.[1] ?? 0)).length,
    })),
  );
  metrics.read('sandpool_approvals_oldest_pending_seconds', () => [
    { labels: {}, value: Math.max(0, ...ages()) / 1_000 },
  ]);
  metrics.read('sandpool_approvals', () =>
    APPROVAL_STATUSES.map((status) => ({ labels: { status }, value: mirror.count(status) })),
  );
  metrics.read('sandpool_approvals_held_requests', () => [{ labels: {}, value: gate.waits.size }]);
};
