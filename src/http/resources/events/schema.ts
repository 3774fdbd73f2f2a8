import { z } from 'zod';
import { clusterID, flag, maybe, timestamp } from '../../corridor/common-schema.ts';

export const EventsQuery = z.object({
  all: maybe(flag).describe('Of every tenant. Admins alone.'),
  begin: maybe(flag).describe(
    'Also send an event `begin` first, whose id is where the stream begins: who comes again with ' +
      'it misses nothing. Of a fleet there is one for each cluster.',
  ),
  clusterID,
});

export const Event = z
  .object({
    time: timestamp,
    type: z.enum(['Normal', 'Warning']),
    reason: z
      .string()
      .describe(
        'One word for programs: `Created`, `Started`, `Unhealthy`, `NodeLeaving`, `Ready`, ' +
          '`Claimed`, `IdleTimeoutChanged`, `Paused`, `Resumed`, `ContainerEnded`, ' +
          '`ProgramsEnded`, `Killing`, `Failed`, `Completed`; of a ' +
          'pool `Created`, `Filled`, `Emptied`, `Resized`, `Changed`, `RolledOut`, ' +
          '`StartFailed`, `BackOff`, `Recovered`, `Deleting`, `Deleted`; of ' +
          'requests that wait for a person `approval.requested`, `approval.decided`, ' +
          '`approval.consumed`. There may be more some day.',
      ),
    message: z.string().describe('For people.'),
    sandboxId: z.string().optional().describe('Left out where it happened to a pool.'),
    poolName: z.string().optional().describe('Left out where it happened to an approval.'),
    approvalId: z.string().optional().describe('Where it happened to an approval.'),
    clusterID: z.string().optional().describe('Where a manager tells it: on which cluster.'),
    namespace: z.string(),
    team: z.string(),
    user: z.string(),
    endReason: z
      .string()
      .optional()
      .describe('With `Killing`, `Failed` and `Completed`: as in the list of sandboxes.'),
    exitCode: z
      .int()
      .optional()
      .describe(
        'With `Completed`, of the main process, where it ended by itself and the code is known.',
      ),
  })
  .meta({ id: 'Event' });

export const EventList = z
  .object({
    items: z.array(Event).describe('The last 50, the oldest first.'),
    total: z.int().describe('How many these are.'),
  })
  .meta({ id: 'EventList' });

export type EventWire = z.infer<typeof Event>;
