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
const NO_SECRETS =
  'Bounded, and without secrets: definitions, variables and passwords are left out.';

const kind = z.enum(ACTOR_KINDS);

/** Opaque end of a page, in one cluster or in several. */
const cursor = z
  .string()
  .refine(
    (value) => cursorIn(value) !== undefined || placeIn(value) !== undefined,
    'must be the `next` of an earlier page',
  )
  .meta({ maxLength: 2_112 });

export const ActorsQuery = z.object({
  clusterID,
  kind: maybe(kind).describe(`Of this kind alone: ${KINDS}`),
  state: maybe(text(MAX_REFERENCE, 1)).describe(
    'In this state, or inside it, such as `stopping` or `idle.available`. `broken`: it ' +
      'has no actor, which threw again and again.',
  ),
  pool: maybe(text(MAX_REFERENCE, 1)).describe(
    "Of this pool: its uid, `{namespace}/{name}`, or a name in the caller's namespace.",
  ),
  limit,
  cursor: maybe(cursor).describe('Where to go on: the `next` of an earlier page.'),
});

export const ActorPath: PathParams<{ kind: ActorKind; key: string }> = {
  schema: z.object({
    kind: kind.describe(KINDS),
    key: text(MAX_REFERENCE, 1).describe(
      "A sandbox's id; a pool's uid, `{namespace}/{name}` or name; `{env}/{name}` of a " +
        "member or group, also with the namespace before it; an approval's id. Slashes as `%2F`.",
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
    'Left out: what `Accept` asks for, else JSON.',
  ),
});

const replica = maybe(name);
const A_REPLICA = 'A name that `GET /debug/shards` shows.';

export const ActorQuery = z.object({
  replica: replica.describe(`Whose view: ${A_REPLICA} Left out: whoever leads the actor.`),
});
export const ShardsQuery = z.object({ clusterID: ofCluster });
export const ReplicaQuery = z.object({
  clusterID: ofCluster,
  replica: replica.describe(`Of which replica: ${A_REPLICA} Left out: the one that answers.`),
});

const summaryFields = {
  kind,
  key: z.string().describe('Names it among its kind.'),
  name: z.string().describe('As people call it.'),
  state: z
    .string()
    .describe('As `stopping.waiting`; of several regions each, with spaces between them.'),
  since: timestamp.optional().describe('Left out where that is forgotten.'),
  status: z
    .string()
    .optional()
    .describe("As the API shows it: a sandbox's status, a pool's phase."),
  paused: z.literal(true).optional().describe('Present if the sandbox is Running and paused.'),
};

export const ActorPage = z
  .object({
    items: z.array(z.object(summaryFields).meta({ id: 'ActorSummary' })),
    next: z
      .string()
      .optional()
      .describe(
        'The `cursor` of the page after this one. Left out: there is none. A page may be ' +
          'shorter than its limit, or empty, and not be the last.',
      ),
    replica: z.string().describe('Who answers: what it hosts is shown.'),
    incomplete,
  })
  .meta({ id: 'ActorPage' });

const json: z.ZodType<Shown> = z.unknown() as unknown as z.ZodType<Shown>;
const jsonFields = z.record(z.string(), json);

export const ActorTransition = z
  .object({
    number: z.int().describe("Counts the actor's transitions, from 1."),
    time: timestamp,
    event: z.string().describe('What the machine was sent.'),
    cause: z.string().optional().describe('What brought that, where it says so.'),
    from: z.string().optional().describe('Left out of the first: it was made then.'),
    to: z.string(),
    stoodMs: z.int().describe('How long it had stood in `from`, in milliseconds.'),
  })
  .meta({ id: 'ActorTransition' });

export const ActorReport = z
  .object({
    ...summaryFields,
    why: z.array(z.string()).describe('Why it stands where it stands, in plain words.'),
    leader: z.object({
      shard: z.int(),
      replica: z
        .string()
        .optional()
        .describe('Who holds the lease of its shard, as far as is known.'),
      epoch: z
        .int()
        .optional()
        .describe('Of that lease, where the replica that is shown holds it.'),
    }),
    context: jsonFields.describe(`What the machine knows. ${NO_SECRETS}`),
    deadlines: z
      .array(
        z.object({
          what: z.string(),
          time: timestamp,
          inMs: z.int().describe('Negative: it is late.'),
        }),
      )
      .describe('What it waits for, and until when.'),
    transitions: z.array(ActorTransition).describe('The last 50, the oldest first.'),
    pending: z
      .array(
        z.object({
          intent: z.string(),
          forMs: z.int().describe('Since when, in milliseconds.'),
          epoch: z
            .int()
            .optional()
            .describe(
              'Of the lease under which it is carried out; left out where a request waits for it.',
            ),
        }),
      )
      .describe('What it asked for, and nobody has answered yet.'),
    record: z.object({
      known: jsonFields.describe(`As the actor knows it. ${NO_SECRETS}`),
      stored: jsonFields
        .optional()
        .describe(
          'As it stands in the store at this moment. Left out: there is none, or `unread`.',
        ),
      unread: z.string().optional().describe('Why it could not be read.'),
      differs: z
        .array(z.object({ field: z.string(), actor: json, record: json }))
        .describe('What the two do not say alike. A mirror may be behind for a moment.'),
    }),
    seenBy: z.object({
      replica: z.string().describe('Whose view this is.'),
      note: z
        .string()
        .optional()
        .describe(
          'Why it is not that of whoever leads the actor, or of the replica that was named.',
        ),
    }),
  })
  .meta({ id: 'ActorReport' });

export const MachineReport = z
  .object({
    kind,
    actors: z.int().describe('How many this replica hosts.'),
    states: z.array(
      z.object({
        path: z.string().describe('With dots; the machine itself is the empty one.'),
        type: z.enum(['atomic', 'compound', 'parallel', 'final', 'history']),
        initial: z.string().optional().describe('Where it begins.'),
        count: z.int().describe('How many actors stand in it, or inside it.'),
        onEntry: z.array(z.string()),
        ways: z
          .array(
            z.object({
              event: z.string().optional().describe('Left out: it is taken at once.'),
              guard: z.string().optional(),
              to: z.string().optional().describe('Left out: it stays.'),
              actions: z.array(z.string()),
            }),
          )
          .describe('Of several for one event the first is taken whose guard holds.'),
      }),
    ),
  })
  .meta({ id: 'MachineReport' });

export const cursorText = ({ kind: of, group, state, entry }: ActorsCursor): string =>
  Buffer.from(JSON.stringify([of, group, state, ...(entry ? [entry.at, entry.id] : [])])).toString(
    'base64url',
  );

/** Parses a cursor of one cluster; undefined for other text. */
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
