import { z } from 'zod';
import { clusterID, flag, maybe, timestamp } from '../../corridor/common-schema.ts';

export const EventsQuery = z.object({
  all: maybe(flag).describe('Events of all tenants. Only for admins.'),
  begin: maybe(flag).describe(
    'First send an event `begin`. Its id is the start position of the stream. A ' +
      'client that reconnects with this id misses nothing. A manager sends one for each ' +
      'cluster.',
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
        'For programs: `Created`, `Started`, `Unhealthy`, `NodeLeaving`, `Ready`, ' +
          '`Claimed`, `IdleTimeoutChanged`, `Paused`, `Resumed`, `ContainerEnded`, ' +
          '`ProgramsEnded`, `Killing`, `Failed`, `Completed`; for a pool `Created`, `Filled`, ' +
          '`Emptied`, `Resized`, `Changed`, `RolledOut`, `StartFailed`, `BackOff`, ' +
          '`Recovered`, `Deleting`, `Deleted`; for approvals `approval.requested`, ' +
          '`approval.decided`, `approval.consumed`. More reasons may be added.',
      ),
    message: z.string().describe('For people.'),
    sandboxId: z.string().optional().describe('Absent for events of a pool.'),
    poolName: z.string().optional().describe('Absent for events of an approval.'),
    approvalId: z.string().optional().describe('For events of an approval.'),
    clusterID: z.string().optional().describe('Cluster of the event. Set only by a manager.'),
    namespace: z.string(),
    team: z.string(),
    user: z.string(),
    endReason: z
      .string()
      .optional()
      .describe(
        'For `Killing`, `Failed` and `Completed`: the same values as in the list of sandboxes.',
      ),
    exitCode: z
      .int()
      .optional()
      .describe(
        'For `Completed`: exit code of the main process, if it ended by itself and the code ' +
          'is known.',
      ),
  })
  .meta({ id: 'Event' });

export const EventList = z
  .object({
    items: z.array(Event).describe('The last 50, oldest first.'),
    total: z.int().describe('Number of items.'),
  })
  .meta({ id: 'EventList' });

export type EventWire = z.infer<typeof Event>;
