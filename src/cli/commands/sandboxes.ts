import { type Command, Option } from 'commander';
import { ApiError } from '../client/api-error.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { Sandbox } from '../client/wire.ts';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../model/sandbox.ts';
import { durationText, nameAndValue, waitOption } from '../common/arguments.ts';
import { claimFiles, filePair } from '../common/claim-files.ts';
import { CLUSTER_OPTION, type ClusterOption } from '../common/cluster-option.ts';
import { addConnectionOptions, type ConnectionOptions } from '../common/connection.ts';
import { group, leaf } from '../common/leaf.ts';
import type { ServiceAction } from '../common/action.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { addPageOptions, type PageOptions, showPage } from '../common/paging.ts';
import { sandboxFields, sandboxTable } from '../show/rows.ts';
import { addVariableOptions, type VariableOptions, variablesOf } from '../common/variables.ts';

export const sandboxesGroup = (action: ServiceAction): Command =>
  group('sandboxes', 'Lists, claims and deletes sandboxes', [
    listLeaf(action),
    getLeaf(action),
    createLeaf(action),
    deleteLeaf(action),
  ]);

interface ListOptions extends PageOptions, ClusterOption {
  readonly pool?: string;
  readonly phase?: SandboxStatus;
  readonly all?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

const listLeaf = (action: ServiceAction): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary: 'Lists claimed sandboxes and recently finished ones, newest first.',
          examples: [
            'sandpool sandboxes list',
            'sandpool sandboxes list --pool default --phase Running',
            'sandpool sandboxes list --metadata job=42',
            'sandpool sandboxes list --cluster west',
            'sandpool sandboxes list -o json',
          ],
        }),
      ),
    )
      .option('--pool <name>', 'only of this pool')
      .addOption(new Option('--phase <phase>', 'only in this phase').choices(SANDBOX_STATUSES)),
  )
    .option(
      '--metadata <key=value>',
      'only live sandboxes with this metadata; repeatable: all must match',
      nameAndValue,
    )
    .option('--all', 'of all tenants, for an admin')
    .option(...CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: ListOptions) => {
        const { pool: poolName, cluster: clusterID, phase, limit, offset, all, metadata } = options;
        const page = await api.call('listSandboxes', {
          query: { poolName, clusterID, phase, limit, offset, all, metadata },
        });
        await showPage(context, options, { page, table: sandboxTable });
      }),
    );

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get <sandbox>',
        summary:
          'Shows one sandbox, or the record of a recently finished sandbox with how it ended.',
        examples: ['sandpool sandboxes get 0190d4a5-7b1e-7c3a-9f00-1234567890ab'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [operand], options: OutputOptions & ConnectionOptions) => {
      const sandboxId = String(operand);
      const lookup = api.call('getSandbox', { params: { sandboxId } });
      const { sandbox } = await lookup.catch(async (error: unknown) => {
        const isGone = error instanceof ApiError && error.errorCode === 'SANDBOX_NOT_FOUND';
        const finished = isGone && (await findFinished(api, sandboxId, options));
        if (finished) return { sandbox: finished };
        throw error;
      });
      await show(context, options, { value: sandbox, text: () => sandboxFields(sandbox) });
    }),
  );

/** Finished sandboxes, newest claims first. */
const MOST_SEARCHED = 20_000;
const PAGE = 1_000;

const findFinished = async (
  api: SandpoolClient,
  sandboxId: string,
  { admin: all }: ConnectionOptions,
): Promise<Sandbox | undefined> => {
  const clusterID = /^(.+)\.[^.]+$/.exec(sandboxId)?.[1];
  const filter = { all, clusterID, phase: 'Completed' as const, limit: PAGE };
  for (let offset = 0; offset < MOST_SEARCHED; offset += PAGE) {
    const { items, total } = await api.call('listSandboxes', { query: { ...filter, offset } });
    const found = items.find(
      ({ sandboxId: id }) => id === sandboxId || sandboxId.endsWith(`.${id}`),
    );
    if (found || offset + PAGE >= total) return found;
  }
  return undefined;
};

const createLeaf = (action: ServiceAction): Command =>
  addVariableOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'create',
          summary:
            'Claims a sandbox and prints its id. The sandbox stays until you delete it or its ' +
            'timeout ends.',
          examples: [
            'SANDBOX=$(sandpool sandboxes create)',
            'sandpool sandboxes create --pool default --idle-timeout 10m -o json',
            'sandpool sandboxes create --env STAGE=test --env-file secrets.env --metadata job=42',
            'sandpool sandboxes create --file job.py:/home/sandbox/job.py',
          ],
        }),
      ),
    ),
  )
    .option('--pool <name>', 'the pool to claim from', 'default')
    .option(
      '--idle-timeout <duration>',
      'end it after this long without activity, such as 5m; 0 is never',
      durationText,
    )
    .addOption(waitOption())
    .option('--auto-resume', 'calls that need it running resume it if it is paused')
    .option(
      '--metadata <key=value>',
      'metadata of the sandbox, shown to all who see it and found by lists; repeatable',
      nameAndValue,
    )
    .option(
      '--file <local:remote>',
      'a local file to copy into it at once, with its mode; - is standard input; repeatable',
      filePair,
    )
    .action(
      action(
        async (
          { api, context },
          _operands,
          options: OutputOptions &
            VariableOptions & {
              readonly pool: string;
              readonly autoResume?: boolean;
              readonly metadata?: Readonly<Record<string, string>>;
              readonly idleTimeout?: string;
              readonly wait?: number;
              readonly file?: ReturnType<typeof filePair>;
            },
        ) => {
          const { sandbox } = await api.call('claimSandbox', {
            body: {
              poolName: options.pool,
              idleTimeout: options.idleTimeout,
              waitTimeoutSeconds: options.wait,
              env: await variablesOf(context, options),
              metadata: options.metadata,
              files: await claimFiles(context, options.file),
              autoResume: options.autoResume,
            },
          });
          await show(context, options, { value: sandbox, text: () => `${sandbox.sandboxId}\n` });
        },
      ),
    );

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'delete <sandbox...>',
        summary: 'Deletes sandboxes, each with everything in it.',
        examples: ['sandpool sandboxes delete "$SANDBOX"'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [ids], options: OutputOptions) => {
      for (const sandboxId of ids as readonly string[]) {
        const deleted = await api.call('deleteSandbox', { params: { sandboxId } });
        await show(context, options, {
          value: deleted,
          text: () => `${deleted.sandboxId} ${deleted.status}\n`,
        });
      }
    }),
  );
