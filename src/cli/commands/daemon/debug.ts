import type { Command } from 'commander';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { ActorReport } from '../../client/wire.ts';
import type { Action } from '../../common/action.ts';
import { actorText, seenByText, transitionLine } from '../../show/explain-actor.ts';
import { withInterrupts } from '../../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../../common/connection.ts';
import { type CliContext, print, say } from '../../common/context.ts';
import { followed, openedFirst } from '../../terminal/following.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';

interface DebugOptions extends ConnectionOptions, OutputOptions {
  readonly follow?: boolean;
}

interface Asked {
  readonly kind: ActorReport['kind'];
  readonly key: string;
  readonly options: DebugOptions;
}

export const debugGroup = (action: Action): Command =>
  group('debug', 'Shows the state of a sandbox, pool, env or approval, for an admin', [
    actorLeaf(action, {
      kind: 'sandbox',
      operands: '<sandbox>',
      of: 'a sandbox',
      example: '"$SANDBOX"',
    }),
    actorLeaf(action, {
      kind: 'pool',
      operands: '<pool>',
      of: 'a pool (POOL or NAMESPACE/POOL)',
      example: 'team-blue/shells',
    }),
    actorLeaf(action, {
      kind: 'member',
      operands: '<env> <member>',
      of: 'a member of an env (ENV or NAMESPACE/ENV)',
      example: 'default default',
    }),
    actorLeaf(action, {
      kind: 'group',
      operands: '<env> <group>',
      of: 'an autoscaling group of an env (ENV or NAMESPACE/ENV)',
      example: 'default default',
    }),
    actorLeaf(action, {
      kind: 'approval',
      operands: '<approval>',
      of: 'an open approval',
      example: '01a21a8e-a887-7738-8b09-9f212a599a4d',
    }),
  ]);

const actorLeaf = (
  action: Action,
  {
    kind,
    operands,
    of,
    example,
  }: {
    readonly kind: ActorReport['kind'];
    readonly operands: string;
    readonly of: string;
    readonly example: string;
  },
): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: `${kind} ${operands}`,
        summary:
          `Shows the state of ${of}, the reason for it, what it waits for, and how it got there. ` +
          'With -f it prints each further transition, as the leading replica sees it.',
        examples: [
          `sandpool debug ${kind} ${example} --admin`,
          `sandpool debug ${kind} ${example} -f --admin`,
        ],
      }),
    ),
  )
    .option(
      '-f, --follow',
      'continue with transitions until it is gone; with -o json one line each',
    )
    .action(
      action(1, async (context, names, options: DebugOptions) => {
        const api = await connect(options, context);
        const asked = {
          kind,
          key: names.filter((name) => typeof name === 'string').join('/'),
          options,
        };
        try {
          return await withInterrupts(async (signal) => {
            if (options.follow) await follow(api, context, { ...asked, signal });
            else await look(api, context, asked);
            return 0;
          }, context.stdout);
        } finally {
          api.close();
        }
      }),
    );

const look = async (
  api: SandpoolClient,
  context: CliContext,
  { kind, key, options }: Asked,
): Promise<void> => {
  const [actor, machine] = await Promise.all([
    api.call('getActor', { params: { kind, key } }),
    api.call('getMachine', { params: { kind } }),
  ]);
  await show(context, options, { value: actor, text: () => actorText(actor, machine) });
};

const follow = async (
  api: SandpoolClient,
  context: CliContext,
  asked: Asked & { readonly signal: AbortSignal },
): Promise<void> => {
  const { kind, key, options, signal } = asked;
  const asJson = options.output === 'json' || options.output === 'yaml';
  let opened = 0;
  const open = () => openedFirst(api.stream('followActor', { params: { kind, key }, signal }));
  for await (const news of followed({ open, signal })) {
    if (news.type === 'message')
      await print(
        context.stdout,
        asJson ? `${JSON.stringify(news.data)}\n` : transitionLine(news.data),
      );
    else if (news.type === 'seen-by') await say(context, seenByText(news.data));
    else if (news.type === 'end') return await say(context, 'it is gone');
    else if (news.type === 'reset' || (news.type === 'open' && opened > 0))
      await say(context, 'some transitions may be missing here');
    else if (news.type === 'open' && !asJson) await look(api, context, asked);
    if (news.type === 'open') opened += 1;
  }
};
