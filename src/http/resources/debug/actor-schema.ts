import { z } from 'zod';
import {
  ACTOR_KINDS,
  type ActorKind,
  type Shown,
  actorKindNotFound,
  actorNotFound,
} from '../../../model/inspection.ts';
import type { ActorsCursor } from '../../../services/debug/debug-operations.ts';
import type { PathParams } from '../../corridor/route.ts';
import { actorNameKind } from '../../corridor/local-names.ts';
import { placeIn } from '../../../model/fleet/cluster-positions.ts';
import {
  clusterID,
  incomplete,
  limit,
  MAX_REFERENCE,
  maybe,
  name,
  ofCluster,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';

const KINDS =
  '`sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an ' +
  'open one).';
const NO_SECRETS = 'Limited in size, and without definitions, variables and passwords.';

const kind = z.enum(ACTOR_KINDS);

const cursor = z
  .string()
  .refine(
    (value) => cursorIn(value) !== undefined || placeIn(value) !== undefined,
    'must be the `next` of an earlier page',
  )
  .meta({ maxLength: 2_112 });

export const ActorsQuery = z.object({
  clusterID,
  kind: maybe(kind).describe(`Only actors of this kind: ${KINDS}`),
  state: maybe(text(MAX_REFERENCE, 1)).describe(
    'Only actors in this state or inside it, such as `stopping` or `idle.available`. ' +
      '`broken`: the actor threw repeatedly.',
  ),
  pool: maybe(text(MAX_REFERENCE, 1)).describe(
    "Only actors of this pool: its uid, `{namespace}/{name}`, or a name in the caller's " +
      'namespace.',
  ),
  limit,
  cursor: maybe(cursor).describe('`next` of the previous page.'),
});

export const ActorPath: PathParams<{ kind: ActorKind; key: string }> = {
  schema: z.object({
    kind: kind.describe(KINDS),
    key: text(MAX_REFERENCE, 1).describe(
      "A sandbox's id; a pool's uid, `{namespace}/{name}` or name; `{env}/{name}` of a " +
        "member or group, optionally after its namespace; an approval's id. Slashes are " +
        '`%2F`.',
    ),
  }),
  otherwise: actorNotFound,
  names: { key: ({ kind: of }) => actorNameKind(of) },
};

export const MachinePath: PathParams<{ kind: ActorKind }> = {
  schema: z.object({ kind: kind.describe(KINDS) }),
  otherwise: actorKindNotFound,
};

export const MachineQuery = z.object({
  clusterID: ofCluster,
  format: maybe(z.enum(['json', 'mermaid'])).describe(
    'Default: the type that `Accept` prefers, or JSON.',
  ),
});

const replica = maybe(name);
const A_REPLICA = 'a name from `GET /debug/shards`.';

export const ActorQuery = z.object({
  replica: replica.describe(
    `Replica whose view to show, ${A_REPLICA} Default: the replica that leads the actor.`,
  ),
});
export const ShardsQuery = z.object({ clusterID: ofCluster });
export const ReplicaQuery = z.object({
  clusterID: ofCluster,
  replica: replica.describe(`Replica to describe, ${A_REPLICA} Default: the replica that answers.`),
});

const summaryFields = {
  kind,
  key: z.string().describe('Unique among actors of this kind.'),
  name: z.string().describe('Display name.'),
  state: z
    .string()
    .describe(
      'Such as `stopping.waiting`. If the machine has several regions, the state of each, ' +
        'separated by spaces.',
    ),
  since: timestamp
    .optional()
    .describe('When it entered the state. Absent if the transition is no longer stored.'),
  status: z
    .string()
    .optional()
    .describe("A sandbox's status or a pool's phase, as the API shows it."),
  paused: z.literal(true).optional().describe('Present if the sandbox is Running and paused.'),
};

export const ActorPage = z
  .object({
    items: z.array(z.object(summaryFields).meta({ id: 'ActorSummary' })),
    next: z
      .string()
      .optional()
      .describe(
        '`cursor` of the next page. Absent on the last page. Other pages may be shorter ' +
          'than `limit`, or empty.',
      ),
    replica: z.string().describe('Replica that answers. The page shows the actors that it hosts.'),
    incomplete,
  })
  .meta({ id: 'ActorPage' });

const json: z.ZodType<Shown> = z.unknown() as unknown as z.ZodType<Shown>;
const jsonFields = z.record(z.string(), json);

export const ActorTransition = z
  .object({
    number: z.int().describe("Number of the actor's transition, from 1."),
    time: timestamp,
    event: z.string().describe('Event that the machine received.'),
    cause: z
      .string()
      .optional()
      .describe('Source of the event. Absent if the event does not give it.'),
    from: z
      .string()
      .optional()
      .describe('Absent in the first transition, which created the actor.'),
    to: z.string(),
    stoodMs: z.int().describe('Time spent in `from`, in milliseconds.'),
  })
  .meta({ id: 'ActorTransition' });

export const ActorReport = z
  .object({
    ...summaryFields,
    why: z.array(z.string()).describe('Reasons for the current state, in plain words.'),
    leader: z.object({
      shard: z.int(),
      replica: z
        .string()
        .optional()
        .describe('Replica that holds the lease of its shard. Absent if unknown.'),
      epoch: z
        .int()
        .optional()
        .describe('Epoch of that lease. Absent unless the replica in `seenBy` holds the lease.'),
    }),
    context: jsonFields.describe(`Context of the state machine. ${NO_SECRETS}`),
    deadlines: z
      .array(
        z.object({
          what: z.string(),
          time: timestamp,
          inMs: z.int().describe('Milliseconds until `time`. Negative if it is overdue.'),
        }),
      )
      .describe('Times for which the actor waits.'),
    transitions: z.array(ActorTransition).describe('The last 50, oldest first.'),
    pending: z
      .array(
        z.object({
          intent: z.string(),
          forMs: z.int().describe('Age of the intent, in milliseconds.'),
          epoch: z
            .int()
            .optional()
            .describe(
              'Epoch of the lease under which the intent is carried out. Absent if a ' +
                'request waits for it.',
            ),
        }),
      )
      .describe('Intents of the machine without an answer yet.'),
    record: z.object({
      known: jsonFields.describe(`The record as the actor knows it. ${NO_SECRETS}`),
      stored: jsonFields
        .optional()
        .describe('The record in the store. Absent if there is none, or if `unread` is set.'),
      unread: z.string().optional().describe('Why the store could not be read.'),
      differs: z
        .array(z.object({ field: z.string(), actor: json, record: json }))
        .describe(
          "Fields that differ between `known` and `stored`. The actor's view may lag for a " +
            'moment.',
        ),
    }),
    seenBy: z.object({
      replica: z.string().describe('Replica whose view this is.'),
      note: z
        .string()
        .optional()
        .describe(
          'Why this is not the view of the replica that leads the actor, or of the ' +
            'requested replica.',
        ),
    }),
  })
  .meta({ id: 'ActorReport' });

export const MachineReport = z
  .object({
    kind,
    actors: z.int().describe('Number of actors that this replica hosts.'),
    states: z.array(
      z.object({
        path: z.string().describe('Path of the state, with dots. Empty for the machine itself.'),
        type: z.enum(['atomic', 'compound', 'parallel', 'final', 'history']),
        initial: z.string().optional().describe('Initial substate.'),
        count: z.int().describe('Number of actors in this state or inside it.'),
        onEntry: z.array(z.string()),
        ways: z
          .array(
            z.object({
              event: z.string().optional().describe('Absent if the transition is taken at once.'),
              guard: z.string().optional(),
              to: z.string().optional().describe('Absent if the state stays the same.'),
              actions: z.array(z.string()),
            }),
          )
          .describe('Transitions. Of several for one event, the first whose guard holds is taken.'),
      }),
    ),
  })
  .meta({ id: 'MachineReport' });

export const cursorText = ({ kind: of, group, state, entry }: ActorsCursor): string =>
  Buffer.from(JSON.stringify([of, group, state, ...(entry ? [entry.at, entry.id] : [])])).toString(
    'base64url',
  );

export const cursorIn = (given: string): ActorsCursor | undefined => {
  if (given.length > 2_048) return undefined;
  try {
    const parsed = CURSOR.safeParse(JSON.parse(Buffer.from(given, 'base64url').toString('utf8')));
    if (!parsed.success) return undefined;
    const [of, group, state, at, id] = parsed.data;
    return {
      kind: of,
      group,
      state,
      entry: at === undefined || id === undefined ? undefined : { at, id },
    };
  } catch {
    return undefined;
  }
};

const part = z.string().max(1_024);
const CURSOR = z.union([
  z.tuple([kind, part, part]),
  z.tuple([kind, part, part, z.number(), part]),
]);

export type ActorSummaryWire = z.infer<typeof ActorPage>['items'][number];
export type ActorTransitionWire = z.infer<typeof ActorTransition>;
export type ActorReportWire = z.infer<typeof ActorReport>;
export type MachineReportWire = z.infer<typeof MachineReport>;
