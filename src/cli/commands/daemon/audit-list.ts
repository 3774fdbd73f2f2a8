import { type Command, Option } from 'commander';
import { setTimeout as pause } from 'node:timers/promises';
import type { Query } from '../../client/operation-request.ts';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { AuditRecord } from '../../client/wire.ts';
import type { Action } from '../../common/action.ts';
import { wholeNumber } from '../../common/arguments.ts';
import { withInterrupts } from '../../common/borrowed-sandbox.ts';
import { CLUSTER_OPTION, type ClusterOption } from '../../common/cluster-option.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../../common/connection.ts';
import { type CliContext, print, say } from '../../common/context.ts';
import { leaf } from '../../common/leaf.ts';
import { lasting } from '../../common/retrying.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { auditLine, auditTable } from '../../show/rows.ts';

interface ListOptions extends ConnectionOptions, OutputOptions, ClusterOption {
  readonly limit?: number;
  readonly follow?: boolean;
  readonly team?: string;
  readonly user?: string;
  readonly operation?: string;
  readonly outcome?: 'done' | 'refused' | 'failed';
}

const FOLLOW_MS = 1_000;
const FOLLOWED_AT_ONCE = 500;

export const listLeaf = (action: Action): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'list',
        summary:
          'Shows recent changes, oldest first, for an admin: who changed what on any replica, ' +
          'from the last 5,000 lines. The audit files have more. With -f it continues with new ' +
          'lines.',
        examples: [
          'sandpool audit --admin',
          'sandpool audit --user ada --outcome refused --admin -o wide',
          'sandpool audit -f --admin -o json',
        ],
      }),
    ),
  )
    .option('--limit <n>', 'maximum number of lines, 20 by default', wholeNumber(1, 1_000))
    .option('-f, --follow', 'continue with new lines; with -o json one line each')
    .option(...CLUSTER_OPTION)
    .option('--team <team>', 'only this team')
    .option('--user <user>', 'only this user')
    .option('--operation <operation>', 'only this operation, such as claimSandbox')
    .addOption(
      new Option('--outcome <outcome>', 'only this outcome').choices(['done', 'refused', 'failed']),
    )
    .action(
      action(1, async (context, _operands, options: ListOptions) => {
        const api = await connect(options, context);
        const { limit, team, user, operation, outcome, cluster: clusterID } = options;
        const query: Query<'listAudit'> = {
          clusterID,
          team,
          user,
          operation,
          outcome,
        };
        try {
          return await withInterrupts(async (signal) => {
            if (options.follow) await follow(api, context, { query, options, signal });
            else
              await showLast(api, context, {
                query: { ...query, limit },
                options,
              });
            return 0;
          }, context.stdout);
        } finally {
          api.close();
        }
      }),
    );

const showLast = async (
  api: SandpoolClient,
  context: CliContext,
  { query, options }: { readonly query: Query<'listAudit'>; readonly options: ListOptions },
): Promise<void> => {
  const page = await api.call('listAudit', { query });
  await show(context, options, {
    value: page,
    text: (wide) => auditTable(page.items.toReversed(), wide),
  });
};

/** Survives a daemon that is unreachable for a while. */
const follow = async (
  api: SandpoolClient,
  context: CliContext,
  {
    query,
    options,
    signal,
  }: {
    readonly query: Query<'listAudit'>;
    readonly options: ListOptions;
    readonly signal: AbortSignal;
  },
): Promise<void> => {
  let seen: ReadonlySet<string> | undefined;
  let limit = options.limit ?? 20;
  const look = lasting(context, () =>
    api.call('listAudit', { query: { ...query, limit }, signal }),
  );
  for (; ; limit = FOLLOWED_AT_ONCE) {
    const { items } = await look();
    const before = seen;
    const fresh = items.filter(({ hash }) => !before?.has(hash));
    if (before && before.size > 0 && fresh.length === FOLLOWED_AT_ONCE)
      await say(context, 'some lines could not be shown: too many were written at once');
    for (const record of fresh.toReversed()) await print(context.stdout, textOf(record, options));
    seen = new Set(
      [...fresh.map(({ hash }) => hash), ...(before ?? [])].slice(0, 2 * FOLLOWED_AT_ONCE),
    );
    await pause(FOLLOW_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
};

const textOf = (record: AuditRecord, { output }: ListOptions): string =>
  output === 'json' || output === 'yaml' ? `${JSON.stringify(record)}\n` : auditLine(record);
