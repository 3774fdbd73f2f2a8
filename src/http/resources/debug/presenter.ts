import type {
  DriverReport,
  QueuesReport,
  ReflectorsReport,
} from '../../../operations/debug/debug-operations.ts';
import type { DriverReportWire, QueuesReportWire, ReflectorsReportWire } from './schema.ts';
import { timestampOf } from '../timestamp.ts';

export const presentQueues = ({
  replica,
  shards,
  outboxes,
  deadlines,
  claimsWaiting,
  actors,
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
    ...(deadlines.next === undefined ? {} : { next: timestampOf(deadlines.next) }),
  },
  claimsWaiting,
  actors: { ...actors },
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
