import type { Command } from 'commander';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { Event } from '../../client/wire.ts';
import type { Action } from '../action.ts';
import { withInterrupts } from '../borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts';
import { type CliContext, print, say } from '../context.ts';
import { CliFailure } from '../failure.ts';
import { followed } from '../terminal/following.ts';
import { given } from '../given.ts';
import { leaf } from '../leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../show/output.ts';
import { eventLine, eventTable } from '../show/rows.ts';

interface EventsOptions extends ConnectionOptions, OutputOptions {
  readonly follow?: boolean;
  readonly all?: boolean;
}

/**
 * `events [SANDBOX]`: what happened to it; with `-f` what happens from now on, to all without one.
 */
export const eventsLeaf = (action: Action): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'events [sandbox]',
        summary:
          'Shows what happened to a sandbox, the oldest first; also of one that has ended. With -f it goes on with what happens: without a sandbox, to all your sandboxes and pools.',
        examples: [
          'sandpool events "$SANDBOX"',
          'sandpool events -f',
          'sandpool events -f --all --admin -o json',
        ],
      }),
    ),
  )
    .option('-f, --follow', 'go on with what happens from now on; with -o json a line each')
    .option('--all', 'of all tenants, for an admin; with -f')
    .action(
      action(1, async (context, [sandbox], options: EventsOptions) => {
        const sandboxId = typeof sandbox === 'string' ? sandbox : undefined;
        if (sandboxId === undefined && !options.follow)
          throw new CliFailure('name a sandbox, or follow what happens with -f', [
            'sandpool events SANDBOX',
            'sandpool events -f',
          ]);
        const api = await connect(options, context);
        try {
          return await withInterrupts(async (signal) => {
            if (options.follow) await follow(api, context, { sandboxId, options, signal });
            else if (sandboxId !== undefined) await showPast(api, context, { sandboxId, options });
            return 0;
          });
        } finally {
          api.close();
        }
      }),
    );

const showPast = async (
  api: SandpoolClient,
  context: CliContext,
  { sandboxId, options }: { readonly sandboxId: string; readonly options: EventsOptions },
): Promise<void> => {
  const list = await api.events(sandboxId);
  await show(context, options, { value: list, text: (wide) => eventTable(list.items, wide) });
};

interface Followed {
  readonly sandboxId: string | undefined;
  readonly options: EventsOptions;
  readonly signal: AbortSignal;
}

/**
 * Of one sandbox: its list when the stream is open, and again before its end, so that nothing that
 * came between is missed.
 */
const follow = async (
  api: SandpoolClient,
  context: CliContext,
  { sandboxId, options, signal }: Followed,
): Promise<void> => {
  const shown = new Set<string>();
  const showOnce = async (event: Event): Promise<void> => {
    const text = JSON.stringify(event);
    if (shown.has(text)) return;
    if (sandboxId !== undefined) shown.add(text);
    await print(context.stdout, lineOf(event, options));
  };
  /** Whether it is over. */
  const showListed = async (id: string): Promise<boolean> => {
    const { items } = await api.events(id);
    for (const event of items) await showOnce(event);
    return items.some(isLast);
  };
  const open = (lastEventId: string | undefined) =>
    api.followEvents(given({ all: options.all }), { signal, ...given({ lastEventId }) });
  for await (const item of followed({ open, signal })) {
    if (context.stdout.destroyed) return;
    if (item.type === 'reset') await say(context, 'older events are no longer known');
    else if (sandboxId === undefined) {
      if (item.type === 'event') await showOnce(item.event);
    } else if (item.type === 'open') {
      if (await showListed(sandboxId)) return;
    } else if (item.event.sandboxId === sandboxId) {
      const last = isLast(item.event);
      if (last && (await showListed(sandboxId))) return;
      await showOnce(item.event);
      if (last) return;
    }
  }
};

const isLast = ({ reason }: Event): boolean => reason === 'Completed';

const lineOf = (event: Event, { output }: EventsOptions): string =>
  output === 'json' || output === 'yaml' ? `${JSON.stringify(event)}\n` : eventLine(event);
