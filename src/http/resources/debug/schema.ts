import { z } from 'zod';
import { timestamp } from '../../corridor/common-schema.ts';

const Shard = z.object({
  shard: z.int().describe('Its number, from 0.'),
  leading: z
    .boolean()
    .describe(
      'Whether the answering replica leads it: it holds the lease, and its mirror has caught up.',
    ),
  replica: z
    .string()
    .optional()
    .describe(
      'Who holds its lease, as the answering replica last heard; left out while nobody does.',
    ),
});

export const ShardReport = z
  .object({
    replica: z.string().describe('Who answers.'),
    replicas: z.array(z.string()).describe('The live ones, by name.'),
    shards: z.array(Shard).describe('All of them.'),
  })
  .meta({ id: 'ShardReport' });

const replica = z.string().describe('Of which replica this is.');

const Outbox = z.object({
  queued: z.int().describe('Asked for, and not begun.'),
  running: z
    .record(
      z.string(),
      z.object({
        count: z.int(),
        oldestMs: z
          .int()
          .describe('How long the oldest of them has been under way, in milliseconds.'),
      }),
    )
    .describe('Begun and not answered, by what was asked for.'),
});

export const QueuesReport = z
  .object({
    replica,
    shards: z
      .array(
        z.object({ shard: z.int(), epoch: z.int().describe('Moves each time the lease is won.') }),
      )
      .describe('That it leads.'),
    outboxes: z
      .object({ sandboxesAndPools: Outbox, members: Outbox, groups: Outbox })
      .describe('What state machines have asked for.'),
    deadlines: z
      .object({ count: z.int(), next: timestamp.optional().describe('When the first one is due.') })
      .describe('What sandboxes and pools wait for.'),
    claimsWaiting: z.int().describe('Claims of this replica that wait for an instance.'),
    actors: z.object({
      sandboxes: z.int(),
      pools: z.int(),
      rebuilt: z.int().describe('How many threw, and were made again.'),
    }),
    webhooks: z
      .array(
        z.object({
          address: z.string().describe('Its origin alone.'),
          waiting: z.int().describe('Messages that it did not take yet.'),
          deadLetters: z
            .array(
              z.object({
                id: z.string().describe('Of the message.'),
                event: z.string(),
                approvalId: z.string(),
                at: timestamp.describe('When it was given up.'),
                attempts: z.int(),
                problem: z.string().describe('What the last attempt met with.'),
              }),
            )
            .describe('The last that were given up, the newest first.'),
        }),
      )
      .optional()
      .describe('How it stands with those who are told of approvals; left out where nobody is.'),
  })
  .meta({ id: 'QueuesReport' });

export const DriverReport = z
  .object({
    replica,
    isolation: z.string().describe('As `GET /readyz` shows it.'),
    warnings: z.array(z.string()),
    problems: z.array(z.string()).describe('What keeps it from its work now.'),
    work: z
      .record(z.string(), z.int())
      .describe('How many of what it has at hand or under way. Names may come and go.'),
  })
  .meta({ id: 'DriverReport' });

const Reflector = z.object({
  name: z.string().describe('What it mirrors.'),
  namespace: z
    .string()
    .optional()
    .describe(
      'It mirrors the objects of this namespace only. If absent, it mirrors all namespaces.',
    ),
  objects: z.int(),
  revision: z.string().describe('All changes up to it were taken in. Empty before the first list.'),
  silentMs: z
    .int()
    .optional()
    .describe('Since the API server last said something about it, in milliseconds.'),
  stale: z.string().optional().describe("Why it can't be relied on."),
  lists: z.int(),
  relists: z.int().describe('Lists after the first.'),
  restarts: z.int().describe('Watches that ended otherwise than by their time.'),
  events: z.int(),
  mishaps: z.int().describe('Objects that could not be read, changes that could not be taken in.'),
});

export const ReflectorsReport = z
  .object({
    replica,
    reflectors: z
      .array(Reflector)
      .describe('None where nobody else writes: on the embedded daemon.'),
  })
  .meta({ id: 'ReflectorsReport' });

export type QueuesReportWire = z.infer<typeof QueuesReport>;
export type DriverReportWire = z.infer<typeof DriverReport>;
export type ReflectorsReportWire = z.infer<typeof ReflectorsReport>;
