import { z } from 'zod';
import { timestamp } from '../../corridor/common-schema.ts';

const Shard = z.object({
  shard: z.int().describe('Number of the shard, from 0.'),
  leading: z
    .boolean()
    .describe(
      'Whether the answering replica leads the shard: it holds the lease, and its mirror is ' +
        'up to date.',
    ),
  replica: z
    .string()
    .optional()
    .describe(
      'Replica that holds the lease, as last seen by the answering replica. Absent if no ' +
        'replica holds it.',
    ),
});

export const ShardReport = z
  .object({
    replica: z.string().describe('Replica that answers.'),
    replicas: z.array(z.string()).describe('Names of the live replicas.'),
    shards: z.array(Shard).describe('All shards.'),
  })
  .meta({ id: 'ShardReport' });

const replica = z.string().describe('Replica that this describes.');

const Outbox = z.object({
  queued: z.int().describe('Number of intents that have not started.'),
  running: z
    .record(
      z.string(),
      z.object({
        count: z.int(),
        oldestMs: z.int().describe('Time since the oldest of them started, in milliseconds.'),
      }),
    )
    .describe('Intents in progress, by kind.'),
});

export const QueuesReport = z
  .object({
    replica,
    shards: z
      .array(
        z.object({
          shard: z.int(),
          epoch: z.int().describe('Grows each time the lease is acquired.'),
        }),
      )
      .describe('Shards that the replica leads.'),
    outboxes: z
      .object({ sandboxesAndPools: Outbox, members: Outbox, groups: Outbox })
      .describe('Intents of state machines.'),
    deadlines: z
      .object({
        count: z.int(),
        next: timestamp.optional().describe('Time of the first deadline. Absent if there is none.'),
      })
      .describe('Times for which sandboxes and pools wait.'),
    claimsWaiting: z.int().describe('Claims on this replica that wait for an instance.'),
    actors: z.object({
      sandboxes: z.int(),
      pools: z.int(),
      rebuilt: z.int().describe('Number of actors that threw and were rebuilt.'),
    }),
    webhooks: z
      .array(
        z.object({
          address: z.string().describe("Origin of the receiver's URL."),
          waiting: z.int().describe('Messages that the receiver has not accepted yet.'),
          deadLetters: z
            .array(
              z.object({
                id: z.string().describe('Id of the message.'),
                event: z.string(),
                approvalId: z.string(),
                at: timestamp.describe('When delivery was abandoned.'),
                attempts: z.int(),
                problem: z.string().describe('Error of the last attempt.'),
              }),
            )
            .describe('The last messages that could not be delivered, newest first.'),
        }),
      )
      .optional()
      .describe('Receivers of approval webhooks. Absent if none are configured.'),
  })
  .meta({ id: 'QueuesReport' });

export const DriverReport = z
  .object({
    replica,
    isolation: z.string().describe('As `GET /readyz` shows it.'),
    warnings: z.array(z.string()),
    problems: z.array(z.string()).describe('Current problems that prevent it from working.'),
    work: z
      .record(z.string(), z.int())
      .describe('Number of objects and operations in progress, by name. Names may change.'),
  })
  .meta({ id: 'DriverReport' });

const Reflector = z.object({
  name: z.string().describe('Kind of object that it mirrors.'),
  namespace: z
    .string()
    .optional()
    .describe('Namespace of the mirrored objects. Absent if it mirrors all namespaces.'),
  objects: z.int(),
  revision: z
    .string()
    .describe('All changes up to this revision are applied. Empty before the first list.'),
  silentMs: z
    .int()
    .optional()
    .describe(
      'Time since the API server last sent something, in milliseconds. Absent before the ' +
        'first answer.',
    ),
  stale: z
    .string()
    .optional()
    .describe('Why the mirror is out of date. Absent if it is up to date.'),
  lists: z.int(),
  relists: z.int().describe('Number of lists after the first.'),
  restarts: z.int().describe('Number of watches that ended before their timeout.'),
  events: z.int(),
  mishaps: z
    .int()
    .describe('Number of unparsable objects, and of changes that could not be applied.'),
});

export const ReflectorsReport = z
  .object({
    replica,
    reflectors: z.array(Reflector).describe('Empty on the embedded daemon, which mirrors nothing.'),
  })
  .meta({ id: 'ReflectorsReport' });

export type QueuesReportWire = z.infer<typeof QueuesReport>;
export type DriverReportWire = z.infer<typeof DriverReport>;
export type ReflectorsReportWire = z.infer<typeof ReflectorsReport>;
