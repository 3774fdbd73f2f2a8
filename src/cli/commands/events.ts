import type { Command } from 'commander';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { Event } from '../../client/wire.ts';
import type { Action } from '../action.ts';
import { withInterrupts } from '../borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts';
import { type CliContext, print, say } from '../context.ts';
import { CliFailure } from '../failure.ts';
import { followed } from '../following.ts';
import { given } from '../given.ts';
import { leaf } from '../leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../output.ts';
import { eventLine, eventTable } from '../rows.ts';

interface EventsOptions extends ConnectionOptions, OutputOptions {
  readonly follow?: boolean;
  readonly all?: boolean;
}

/** `events [SANDBOX]`: what happened to it; with `-f` what happens from now on, to all without one. */
export const eventsLeaf = (action: Action): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: 'events [sandbox]',
    summary: 'Shows what happened to a sandbox, the oldest first; also of one that has ended. With -f it goes on with what happens: without a sandbox, to all your sandboxes and pools.',
    examples: ['sandpool events "$SANDBOX"', 'sandpool events -f', 'sandpool events -f --all --admin -o json'],
  })))
    .option('-f, --follow', 'go on with what happens from now on; with -o json a line each')
    .option('--all', 'of all tenants, for an admin; with -f')
    .action(action(1, async (context, [sandbox], options: EventsOptions) => {
      const sandboxId = typeof sandbox === 'string' ? sandbox : undefined;
      if (sandboxId === undefined && !options.follow) throw new CliFailure('name a sandbox, or follow what happens with -f', ['sandpool events SANDBOX', 'sandpool events -f']);
      const api = await connect(options, context);
      try {
        return await withInterrupts(async (signal) => {
          const past = sandboxId === undefined ? [] : await showPast(api, context, { sandboxId, options });
          if (options.follow) await showNew(api, context, { sandboxId, options, signal, past });
          return 0;
        });
      } finally {
        api.close();
      }
    }));

const showPast = async (api: SandpoolClient, context: CliContext, { sandboxId, options }: { readonly sandboxId: string; readonly options: EventsOptions }): Promise<readonly Event[]> => {
  const list = await api.events(sandboxId);
  if (options.follow) for (const event of list.items) await print(context.stdout, lineOf(event, options));
  else await show(context, options, { value: list, text: (wide) => eventTable(list.items, wide) });
  return list.items;
};

interface New {
  readonly sandboxId: string | undefined;
  readonly options: EventsOptions;
  readonly signal: AbortSignal;
  /** Shown already. */
  readonly past: readonly Event[];
}

const showNew = async (api: SandpoolClient, context: CliContext, { sandboxId, options, signal, past }: New): Promise<void> => {
  const shown = new Set(past.map((event) => JSON.stringify(event)));
  const open = (lastEventId: string | undefined) => api.followEvents(given({ all: options.all }), { signal, ...given({ lastEventId }) });
  for await (const item of followed({ open, signal })) {
    if (context.stdout.destroyed) return;
    if (item.type === 'reset') {
      await say(context, 'older events are no longer known');
    } else if ((sandboxId === undefined || item.event.sandboxId === sandboxId) && !shown.has(JSON.stringify(item.event))) {
      await print(context.stdout, lineOf(item.event, options));
      if (sandboxId !== undefined && item.event.reason === 'Completed') return;
    }
  }
};

const lineOf = (event: Event, { output }: EventsOptions): string => (output === 'json' || output === 'yaml' ? `${JSON.stringify(event)}\n` : eventLine(event));
