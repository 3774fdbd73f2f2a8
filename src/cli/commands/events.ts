import type { Command } from 'commander';
import type { StreamEvent } from '../client/event-stream.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { Event, EventList } from '../client/wire.ts';
import type { Action } from '../common/action.ts';
import { withInterrupts } from '../common/borrowed-sandbox.ts';
import { CLUSTER_OPTION, type ClusterOption } from '../common/cluster-option.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { type CliContext, print, say } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { followed, openedFirst } from '../terminal/following.ts';

import { leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { eventLine, eventTable } from '../show/rows.ts';

interface EventsOptions extends ConnectionOptions, OutputOptions, ClusterOption {
  readonly follow?: boolean;
  readonly all?: boolean;
}

type Subject =
  | { readonly kind: 'sandbox'; readonly id: string }
  | { readonly kind: 'pool'; readonly name: string };

export const eventsLeaf = (action: Action): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'events [subject] [pool]',
        summary:
          'Shows the events of a sandbox, oldest first. Works even if it has ended. `events ' +
          'pool NAME` shows the events of a pool, even if it was deleted. With -f it ' +
          'continues with new events; without a sandbox or pool, with those of all your ' +
          'sandboxes and pools.',
        examples: [
          'sandpool events "$SANDBOX"',
          'sandpool events pool default',
          'sandpool events -f',
          'sandpool events -f --all --admin -o json',
          'sandpool events -f --cluster west',
        ],
      }).usage('[options] [SANDBOX | pool NAME]'),
    ),
  )
    .option('-f, --follow', 'continue with new events; with -o json one line each')
    .option('--all', 'of all tenants, for an admin; with -f')
    .option(...CLUSTER_OPTION)
    .action(
      action(1, async (context, [first, second], options: EventsOptions) => {
        const subject = subjectOf(first, second);
        if (!subject && !options.follow)
          throw new CliFailure('name a sandbox or a pool, or follow events with -f', [
            'sandpool events SANDBOX',
            'sandpool events pool NAME',
            'sandpool events -f',
          ]);
        const api = await connect(options, context);
        try {
          return await withInterrupts(async (signal) => {
            if (options.follow) await follow(api, context, { subject, options, signal });
            else if (subject) await showPast(api, context, { subject, options });
            return 0;
          }, context.stdout);
        } finally {
          api.close();
        }
      }),
    );

const subjectOf = (first: unknown, second: unknown): Subject | undefined => {
  // `wait` spells pools as pool/NAME
  const words = [first, second].flatMap((word) =>
    typeof word === 'string' ? word.split('/') : [],
  );
  const [kind, name] = words;
  if (kind === undefined) return undefined;
  if (kind === 'env')
    throw new CliFailure(
      'envs have no events: their groups have decisions, and their pools have events',
      [
        `sandpool envs explain ${name ?? 'NAME'}`,
        `sandpool envs groups decisions ${name ?? 'NAME'} GROUP`,
        'sandpool events pool MEMBER',
      ],
    );
  if (kind === 'pool') {
    if (name === undefined)
      throw new CliFailure('name the pool', ['sandpool events pool NAME', 'sandpool pools list']);
    return { kind, name };
  }
  if (name !== undefined)
    throw new CliFailure(`${kind} ${name} has no list of events`, [
      'sandpool events SANDBOX',
      'sandpool events pool NAME',
    ]);
  return { kind: 'sandbox', id: kind };
};

const listOf = async (api: SandpoolClient, subject: Subject): Promise<EventList> =>
  subject.kind === 'pool'
    ? await api.call('listPoolEvents', { params: { name: subject.name } })
    : await api.call('listSandboxEvents', { params: { sandboxId: subject.id } });

/** A manager adds the cluster. */
const nameIn = ({ sandboxId, poolName }: Event, { kind }: Subject): string | undefined =>
  kind === 'sandbox' ? sandboxId : sandboxId === undefined ? poolName : undefined;

const showPast = async (
  api: SandpoolClient,
  context: CliContext,
  { subject, options }: { readonly subject: Subject; readonly options: EventsOptions },
): Promise<void> => {
  const list = await listOf(api, subject);
  await show(context, options, { value: list, text: (wide) => eventTable(list.items, wide) });
};

interface Followed {
  readonly subject: Subject | undefined;
  readonly options: EventsOptions;
  readonly signal: AbortSignal;
}

/** Lists a sandbox's events again before the last one, so that none is missed. */
const follow = async (
  api: SandpoolClient,
  context: CliContext,
  { subject, options, signal }: Followed,
): Promise<void> => {
  const shown = new Set<string>();
  const names = new Set<string | undefined>(
    subject && [subject.kind === 'pool' ? subject.name : subject.id],
  );
  const showOnce = async (event: Event): Promise<void> => {
    const text = JSON.stringify(event);
    if (shown.has(text)) return;
    if (subject) shown.add(text);
    await print(context.stdout, lineOf(event, options));
  };
  /** Whether the stream is over. */
  const showListed = async (of: Subject): Promise<boolean> => {
    const { items } = await listOf(api, of);
    for (const event of items) {
      names.add(nameIn(event, of));
      await showOnce(event);
    }
    return of.kind === 'sandbox' && items.some(isLast);
  };
  const query = { all: options.all, clusterID: options.cluster, begin: true };
  const open = (lastEventId: string | undefined) =>
    openedFirst(api.stream('followEvents', { query, signal, lastEventId }));
  for await (const item of followed({ open, signal })) {
    const remark = remarkOn(item);
    if (remark !== undefined) await say(context, remark);
    else if (item.type === 'open') {
      if (subject && (await showListed(subject))) return;
    } else if (item.type !== 'message') continue;
    else if (!subject) await showOnce(item.data);
    else if (names.has(nameIn(item.data, subject) ?? '')) {
      const last = isLast(item.data);
      if (last && (await showListed(subject))) return;
      await showOnce(item.data);
      if (last) return;
    }
  }
};

const remarkOn = (
  event: StreamEvent<'followEvents'> | { readonly type: 'open' },
): string | undefined => {
  if (event.type === 'reset') {
    const { clusterID } = event.data;
    const whose = clusterID === undefined ? '' : `of cluster ${clusterID} `;
    return `older events ${whose}are no longer stored`;
  }
  if (event.type !== 'cluster') return undefined;
  const { clusterID, incomplete } = event.data;
  return incomplete
    ? `events of cluster ${clusterID} are not shown: it does not answer`
    : `events of cluster ${clusterID} are shown again`;
};

const isLast = ({ reason }: Event): boolean => reason === 'Completed';

const lineOf = (event: Event, { output }: EventsOptions): string =>
  output === 'json' || output === 'yaml' ? `${JSON.stringify(event)}\n` : eventLine(event);
