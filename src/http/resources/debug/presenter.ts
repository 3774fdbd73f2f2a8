import type {
  DriverReport,
  QueuesReport,
  ReflectorsReport,
} from '../../../services/debug/debug-operations.ts';
import type { DriverReportWire, QueuesReportWire, ReflectorsReportWire } from './schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentQueues = ({
  replica,
  shards,
  outboxes,
  deadlines,
  claimsWaiting,
  actors,
  webhooks,
}: QueuesReport): QueuesReportWire => ({
  replica,
  shards: shards.map(({ shard, epoch }) => ({ shard, epoch })),
  outboxes: {
    sandboxesAndPools: { ...outboxes.sandboxesAndPools },
    members: { ...outboxes.members },
    groups: { ...outboxes.groups },
  },
  deadlines: {
    count: deadlines.count,
    next: timestampOf(deadlines.next),
  },
  claimsWaiting,
  actors: { ...actors },
  webhooks: webhooks.length === 0 ? undefined : webhooks.map(presentWebhook),
});

type WebhookWire = NonNullable<QueuesReportWire['webhooks']>[number];

const presentWebhook = ({
  address,
  waiting,
  deadLetters,
}: NonNullable<QueuesReport['webhooks']>[number]): WebhookWire => ({
  address,
  waiting,
  deadLetters: deadLetters.map(({ id, event, approvalId, at, attempts, problem }) => ({
    id,
    event,
    approvalId,
    at: timestampOf(at),
    attempts,
    problem,
  })),
});

export const presentDriver = ({
  replica,
  isolation,
  warnings,
  problems,
  work,
}: DriverReport): DriverReportWire => ({
  replica,
  isolation,
  warnings: [...warnings],
  problems: [...problems],
  work: { ...work },
});

export const presentReflectors = ({
  replica,
  reflectors,
}: ReflectorsReport): ReflectorsReportWire => ({
  replica,
  reflectors: reflectors.map((each) => ({ ...each })),
});
