import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Body } from '../../client/operation-request.ts';
import { SCALE_UP_MODES } from '../../../model/envs/autoscaling-group.ts';
import { parseDuration } from '../../../model/durations.ts';
import type { ServiceAction } from '../../common/action.ts';
import { replicaCount } from '../../common/arguments.ts';
import { addNamespacedOptions } from '../../common/connection.ts';
import type { CliContext } from '../../common/context.ts';
import { agreedName, type FileDocument, readDocument, within } from '../../common/document.ts';
import { nothingToDo } from '../../common/env-options.ts';
import { decisionTable, groupFields, groupTable } from '../../show/env-rows.ts';
import { omitUndefined } from '../../../lib/plain-data.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { type Switch, switchOption } from '../../common/pool-options.ts';

export const groupsGroup = (action: ServiceAction): Command =>
  group('groups', 'Shows and sets how the members of an env grow and shrink', [
    listLeaf(action),
    getLeaf(action),
    setLeaf(action),
    deleteLeaf(action),
    decisionsLeaf(action),
  ]);

interface SetOptions extends OutputOptions {
  readonly file?: string;
  readonly enabled?: Switch;
  readonly min?: number;
  readonly max?: number;
  readonly mode?: string;
  readonly cooldown?: number;
  readonly idleThreshold?: number;
  readonly quietWindow?: number;
  readonly saturationCooldown?: number;
  readonly idleTimeout?: number;
  readonly stabilization?: number;
  readonly protection?: number;
}

const listLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'list <env>',
        summary: 'Lists the autoscaling groups of an env.',
        examples: [
          'sandpool envs groups list default',
          'sandpool envs groups list default -o wide',
        ],
      }),
    ),
  ).action(
    action(async ({ api, context }, [env], options: OutputOptions) => {
      const list = await api.call('listGroups', { params: { name: env as string } });
      await show(context, options, { value: list, text: (wide) => groupTable(list.items, wide) });
    }),
  );

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'get <env> <group>',
        summary: 'Shows one autoscaling group.',
        examples: ['sandpool envs groups get default default'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [env, name], options: OutputOptions) => {
      const { group: shown } = await api.call('getGroup', {
        params: { name: env as string, groupName: name as string },
      });
      await show(context, options, { value: shown, text: () => groupFields(shown) });
    }),
  );

const setLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'set <env> [group]',
        summary:
          'Changes how a group grows and shrinks. Options that you omit stay unchanged. New ' +
          'bounds apply at once.',
        examples: [
          'sandpool envs groups set default default --max 128',
          'sandpool envs groups set default default --mode Aggressive --cooldown 10s',
          'sandpool envs groups set default default --enabled off',
        ],
      }),
    ),
  )
    .option(
      '-f, --file <file>',
      'YAML or JSON with the fields of the REST API; - is standard input. Options override it',
    )
    .addOption(
      switchOption('--enabled', 'off: members keep their size, and you set their replicas'),
    )
    .option('--min <n>', 'minimum of its members together', replicaCount)
    .option('--max <n>', 'maximum of its members together', replicaCount)
    .addOption(new Option('--mode <mode>', 'how eagerly it grows').choices(SCALE_UP_MODES))
    .option('--cooldown <duration>', 'minimum time between two scale-ups', wholeSeconds)
    .option(
      '--idle-threshold <duration>',
      'how long idle instances must have been too few before it grows',
      wholeSeconds,
    )
    .option(
      '--quiet-window <duration>',
      'with no idle instances, it grows only if a claim came within this time; 0: always',
      wholeSeconds,
    )
    .option(
      '--saturation-cooldown <duration>',
      'how long a member that could not grow is skipped',
      wholeSeconds,
    )
    .option(
      '--idle-timeout <duration>',
      'instances that were idle for this long are surplus; 0: it never scales down',
      wholeSeconds,
    )
    .option(
      '--stabilization <duration>',
      'it scales down to the highest size that it wanted within this time',
      wholeSeconds,
    )
    .option(
      '--protection <duration>',
      'no scale-down this soon after a scale-up, and no instance younger than this is removed',
      wholeSeconds,
    )
    .action(
      action(async ({ api, context }, [env, operand], options: SetOptions) => {
        const { name: inFile, ...change } = await groupFieldsOf(context, options);
        const name = agreedName(operand, inFile, 'name');
        if (Object.keys(change).length === 0) throw nothingToDo('set', '--max 128');
        const { group: shown } = await api.call('updateGroup', {
          params: { name: env as string, groupName: name },
          body: change as Body<'updateGroup'>,
        });
        await show(context, options, { value: shown, text: () => groupFields(shown) });
      }),
    );

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'delete <env> <group>',
        summary: 'Deletes a group. Its members keep their size; you set it from then on.',
        examples: ['sandpool envs groups delete default default'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [env, name], options: OutputOptions) => {
      const deleted = await api.call('deleteGroup', {
        params: { name: env as string, groupName: name as string },
      });
      await show(context, options, {
        value: deleted,
        text: () => `${deleted.name} ${deleted.status}\n`,
      });
    }),
  );

const decisionsLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'decisions <env> <group>',
        summary:
          'Lists recent decisions of a group, newest first: what it saw, what it did, why, and ' +
          'why not more.',
        examples: [
          'sandpool envs groups decisions default default',
          'sandpool envs groups decisions default default -o wide',
        ],
      }),
    ),
  ).action(
    action(async ({ api, context }, [env, name], options: OutputOptions) => {
      const list = await api.call('listDecisions', {
        params: { name: env as string, groupName: name as string },
      });
      await show(context, options, {
        value: list,
        text: (wide) => decisionTable(list.items, wide),
      });
    }),
  );

const groupFieldsOf = async (context: CliContext, options: SetOptions): Promise<FileDocument> => {
  const file = options.file === undefined ? {} : await readDocument(context, options.file);
  return {
    ...file,
    ...omitUndefined({
      enabled: options.enabled === undefined ? undefined : options.enabled === 'on',
      minReplicas: options.min,
      maxReplicas: options.max,
    }),
    ...within(
      'scaleUpPolicy',
      file,
      omitUndefined({
        mode: options.mode,
        cooldownSeconds: options.cooldown,
        idleThresholdSeconds: options.idleThreshold,
        idleZeroQuietWindowSeconds: options.quietWindow,
        saturationCooldownSeconds: options.saturationCooldown,
      }),
    ),
    ...within(
      'scaleDownPolicy',
      file,
      omitUndefined({
        idleTimeoutSeconds: options.idleTimeout,
        stabilizationSeconds: options.stabilization,
        protectionWindowSeconds: options.protection,
      }),
    ),
  };
};

const wholeSeconds = (text: string): number => {
  const ms = parseDuration(text);
  if (ms === undefined || ms % 1_000 !== 0)
    throw new InvalidArgumentError(
      'It must be a duration of whole seconds, such as 90s, 30m or 1h30m.',
    );
  return ms / 1_000;
};
