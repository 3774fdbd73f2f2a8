import type { Command } from 'commander';
import type { Body } from '../../client/operation-request.ts';
import type { ServiceAction } from '../../common/action.ts';
import { replicaCount, wholeNumber } from '../../common/arguments.ts';
import { addNamespacedOptions } from '../../common/connection.ts';
import type { CliContext } from '../../common/context.ts';
import {
  agreedName,
  type FileDocument,
  isObject,
  readDocument,
  within,
} from '../../common/document.ts';
import { nothingToDo } from '../../common/env-options.ts';
import { omitUndefined } from '../../../lib/plain-data.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import {
  addFileOption,
  addInstanceTypeOptions,
  addRolloutOptions,
  type SizedOptions,
  strategyOf,
} from '../../common/pool-options.ts';
import { poolFields, poolTable } from '../../show/rows.ts';

/** `envs members list|add|update|remove`. */
export const membersGroup = (action: ServiceAction): Command =>
  group('members', 'Lists, adds, changes and removes the members of an env; each is a pool', [
    listLeaf(action),
    addLeaf(action),
    updateLeaf(action),
    removeLeaf(action),
  ]);

interface MemberOptions extends SizedOptions {
  readonly name?: string;
  readonly cluster?: string;
  readonly group?: string;
  readonly priority?: number;
  readonly scaleUpPriority?: number;
  readonly scaleDownPriority?: number;
}

const MAX_PRIORITY = 1_000;

const listLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'list <env>',
        summary: 'Lists the pools of an env’s members.',
        examples: ['sandpool envs members list default'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [env], options: OutputOptions) => {
      const list = await api.call('listMembers', { params: { name: env as string } });
      await show(context, options, { value: list, text: (wide) => poolTable(list.items, wide) });
    }),
  );

const addLeaf = (action: ServiceAction): Command =>
  addMemberOptions(
    addOutputOption(
      addNamespacedOptions(
        leaf({
          usage: 'add <env>',
          summary:
            'Adds a member: a pool, with an autoscaling group of its own unless one is named.',
          examples: [
            'sandpool envs members add web --name small --instance-type small --replicas ' +
              '4 --max-replicas 64',
            'sandpool envs members add web --name big --cpu 4 --memory 8Gi --group small ' +
              '--priority -1 --max-replicas 8',
            'sandpool envs members add web -f member.yaml',
          ],
        }),
      ),
    ),
  )
    .option('--name <name>', 'of the member and its pool; made up unless told')
    .option('--cluster <clusterID>', 'where it is; on the cluster that is asked unless told')
    .option('--replicas <n>', 'instances to begin with; 1 unless told', replicaCount)
    .action(
      action(async ({ api, context }, [env], options: OutputOptions & MemberOptions) => {
        const spec = {
          ...(await memberFieldsOf(context, options)),
          ...omitUndefined({
            name: options.name,
            clusterID: options.cluster,
            replicas: options.replicas,
          }),
        };
        const { template } = await api.call('addMember', {
          params: { name: env as string },
          body: spec as Body<'addMember'>,
        });
        await show(context, options, { value: template, text: () => poolFields(template) });
      }),
    );

const updateLeaf = (action: ServiceAction): Command =>
  addMemberOptions(
    addOutputOption(
      addNamespacedOptions(
        leaf({
          usage: 'update <env> [member]',
          summary:
            'Changes a member; what is not named stays. Its pool follows by itself. How ' +
            'it grows and shrinks is its group’s: envs groups set.',
          examples: [
            'sandpool envs members update web small --max-replicas 128',
            'sandpool envs members update web small --group shared --priority 5',
            'sandpool envs members update web -f member.yaml',
          ],
        }),
      ),
    ),
  )
    .option('--replicas <n>', 'instances, while its group is off', replicaCount)
    .action(
      action(async ({ api, context }, [env, operand], options: OutputOptions & MemberOptions) => {
        const { name: inFile, ...fields } = await memberFieldsOf(context, options);
        const member = agreedName(operand, inFile, 'name');
        const change = { ...fields, ...omitUndefined({ replicas: options.replicas }) };
        if (Object.keys(change).length === 0) throw nothingToDo('change', '--max-replicas 128');
        const { template } = await api.call('updateMember', {
          params: { name: env as string, pool: member },
          body: change as Body<'updateMember'>,
        });
        await show(context, options, { value: template, text: () => poolFields(template) });
      }),
    );

const removeLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'remove <env> <member>',
        summary:
          'Removes a member with its pool, and its group where nobody else is in it. ' +
          'Running sandboxes live on, unless --force.',
        examples: [
          'sandpool envs members remove web small',
          'sandpool envs members remove web small --force',
        ],
      }),
    ),
  )
    .option('--force', 'end its running sandboxes too')
    .action(
      action(
        async (
          { api, context },
          [env, member],
          options: OutputOptions & { readonly force?: boolean },
        ) => {
          const removed = await api.call('deleteMember', {
            params: { name: env as string, pool: member as string },
            query: { force: options.force },
          });
          await show(context, options, {
            value: removed,
            text: () => `${removed.name} ${removed.status}\n`,
          });
        },
      ),
    );

const addMemberOptions = (command: Command): Command =>
  addRolloutOptions(
    addInstanceTypeOptions(addFileOption(command))
      .option(
        '--cpu <quantity>',
        'of the first container, such as 500m; counts before the instance type',
      )
      .option(
        '--memory <quantity>',
        'of the first container, such as 256Mi; counts before the instance type',
      )
      .option('--min-replicas <n>', 'the least that it may become', replicaCount)
      .option('--max-replicas <n>', 'the most that it may become', replicaCount)
      .option('--group <group>', 'the autoscaling group that sizes it')
      .option(
        '--priority <n>',
        'of the members of a group the higher one grows first and shrinks last; 0 unless told',
        signedPriority,
      )
      .option(
        '--scale-up-priority <n>',
        'the higher one grows first; the priority unless told',
        signedPriority,
      )
      .option(
        '--scale-down-priority <n>',
        'the higher one shrinks first; minus the priority unless told',
        signedPriority,
      ),
    'envs sync',
  );

const memberFieldsOf = async (
  context: CliContext,
  options: MemberOptions,
): Promise<FileDocument> => {
  const file = options.file === undefined ? {} : await readDocument(context, options.file);
  const amounts = omitUndefined({ cpu: options.cpu, memory: options.memory });
  const inFile = isObject(file['inlineResources']) ? file['inlineResources'] : {};
  const resources =
    Object.keys(amounts).length === 0
      ? {}
      : { ...within('requests', inFile, amounts), ...within('limits', inFile, amounts) };
  return {
    ...file,
    ...omitUndefined({
      instanceType: options.instanceType,
      multiplier: options.multiplier,
      minReplicas: options.minReplicas,
      maxReplicas: options.maxReplicas,
      scalingGroup: options.group,
      priority: options.priority,
      scaleUpPriority: options.scaleUpPriority,
      scaleDownPriority: options.scaleDownPriority,
      labels: options.label,
    }),
    ...within('inlineResources', file, resources),
    ...within('updateStrategy', file, strategyOf(options)),
  };
};

const signedPriority = (text: string): number =>
  text.startsWith('-')
    ? -wholeNumber(0, MAX_PRIORITY)(text.slice(1))
    : wholeNumber(0, MAX_PRIORITY)(text);
