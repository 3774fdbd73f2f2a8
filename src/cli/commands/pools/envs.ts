import type { Command } from 'commander';
import type { Body } from '../../client/operation-request.ts';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { EnvEnvelope, NarrowEnv } from '../../client/wire.ts';
import type { ServiceAction } from '../../common/action.ts';
import { addConnectionOptions, addNamespacedOptions } from '../../common/connection.ts';
import { pluralize } from '../../show/pluralize.ts';
import { agreedName, type FileDocument, isObject } from '../../common/document.ts';
import {
  addEnvOptions,
  envFieldsOf,
  type EnvOptions,
  nothingToDo,
  OVERRIDES,
} from '../../common/env-options.ts';
import { envFields, envTable } from '../../show/env-rows.ts';
import { CliFailure } from '../../common/failure.ts';
import { omitUndefined } from '../../../lib/plain-data.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { addPageOptions, type PageOptions, showPage } from '../../common/paging.ts';
import { groupsGroup } from './env-groups.ts';
import { membersGroup } from './env-members.ts';
import { statusLeaf } from './env-status.ts';
import { type EnvStory, explainEnv } from '../../show/explain-env.ts';

export const envsGroup = (action: ServiceAction): Command =>
  group(
    'envs',
    'Lists, creates, changes and deletes envs, with their members and autoscaling groups',
    [
      listLeaf(action),
      getLeaf(action),
      createLeaf(action),
      updateLeaf(action),
      deleteLeaf(action),
      syncLeaf(action),
      statusLeaf(action),
      explainLeaf(action),
      membersGroup(action),
      groupsGroup(action),
    ],
  );

const listLeaf = (action: ServiceAction): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary: 'Lists the envs, newest first.',
          examples: ['sandpool envs list', 'sandpool envs list --all --admin -o wide'],
        }),
      ),
    ),
  )
    .option('--all', 'of all tenants, for an admin')
    .action(
      action(
        async ({ api, context }, _operands, options: PageOptions & { readonly all?: boolean }) => {
          const page = await api.call('listEnvs', {
            query: { limit: options.limit, offset: options.offset, all: options.all },
          });
          await showPage(context, options, { page, table: envTable });
        },
      ),
    );

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'get <env>',
        summary: 'Shows one env.',
        examples: [
          'sandpool envs get default',
          'sandpool envs get default --editable -o yaml > env.yaml',
        ],
      }),
    ),
  )
    .option('--editable', 'only the fields that can be changed: a file for create and update')
    .action(
      action(
        async (
          { api, context },
          [name],
          options: OutputOptions & { readonly editable?: boolean },
        ) => {
          const envelope = await api.call('getEnv', { params: { name: name as string } });
          if (options.editable)
            return await show(context, options.output === 'json' ? options : { output: 'yaml' }, {
              value: envelope.editable,
              text: () => '',
            });
          await showEnv(context, options, envelope);
        },
      ),
    );

const createLeaf = (action: ServiceAction): Command =>
  addEnvOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'create [name]',
          summary:
            'Creates an env from a template, without members. Add members with envs members add.',
          examples: [
            'sandpool envs create web --template default',
            'sandpool envs create web --template default --image python:3.13 --idle-timeout 30m',
            'sandpool envs create -f env.yaml',
          ],
        }),
      ),
    ),
  ).action(
    action(async ({ api, context }, [operand], options: OutputOptions & EnvOptions) => {
      const { templateRef, ...spec } = await envFieldsOf(context, options);
      const name = agreedName(operand, spec['name'], 'name');
      if (!isObject(templateRef) || templateRef['name'] === undefined) {
        throw new CliFailure('no template was given', [
          'name a template: --template NAME (available: sandpool templates list)',
          'or use a file: -f FILE',
        ]);
      }
      await showEnv(
        context,
        options,
        await api.call('createEnv', {
          body: {
            mode: 'WarmPool',
            ...spec,
            name,
            templateRef: withoutNull(templateRef),
          } as Body<'createEnv'>,
        }),
      );
    }),
  );

const updateLeaf = (action: ServiceAction): Command =>
  addEnvOptions(
    addOutputOption(
      addNamespacedOptions(
        leaf({
          usage: 'update [env]',
          summary:
            'Changes an env. Options that you omit stay unchanged; null in a file removes a ' +
            'value. The pools of its members follow automatically. Running sandboxes are never ' +
            'changed.',
          examples: [
            'sandpool envs update web --image python:3.13',
            'sandpool envs update web --unset image',
            'sandpool envs update web --template-version 4',
            'sandpool envs update -f env.yaml',
          ],
        }),
      ),
    ),
  )
    .option('--unset <override...>', `remove these overrides: ${OVERRIDES.join(', ')}`)
    .action(
      action(async ({ api, context }, [operand], options: OutputOptions & EnvOptions) => {
        checkUnset(options.unset ?? []);
        const { name: inFile, templateRef, mode, ...change } = await envFieldsOf(context, options);
        const name = agreedName(operand, inFile, 'name');
        const renamed = isObject(templateRef) ? templateRef : undefined;
        if (!renamed && mode === undefined && Object.keys(change).length === 0)
          throw nothingToDo('change', '--image python:3.13');
        const moved = renamed
          ? await changeTemplate(api, name, { templateRef: renamed, ...omitUndefined({ mode }) })
          : undefined;
        const changed =
          moved && Object.keys(change).length === 0
            ? moved
            : await api.call('patchEnv', { params: { name }, body: change as Body<'patchEnv'> });
        await showEnv(context, options, changed);
      }),
    );

/** Replacing the template rewrites the shell, so its other fields are written back as read. */
const changeTemplate = async (
  api: SandpoolClient,
  name: string,
  change: FileDocument & { readonly templateRef: FileDocument },
): Promise<EnvEnvelope> => {
  const { editable } = await api.call('getEnv', { params: { name } });
  const shell: FileDocument = {
    ...editable,
    ...change,
    templateRef: withoutNull({ ...editable.templateRef, ...change.templateRef }),
  };
  return await api.call('replaceEnv', { params: { name }, body: shell as Body<'replaceEnv'> });
};

const withoutNull = (fields: FileDocument): FileDocument =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

const checkUnset = (names: readonly string[]): void => {
  const unknown = names.find((name) => !OVERRIDES.some((known) => known === name));
  if (unknown !== undefined)
    throw new CliFailure(`${unknown} is not an override`, [`overrides: ${OVERRIDES.join(', ')}`]);
};

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'delete <env>',
        summary:
          'Deletes an env with its members and their pools. Refused while any of their sandboxes ' +
          'runs, unless --force is given.',
        examples: ['sandpool envs delete web', 'sandpool envs delete web --force'],
      }),
    ),
  )
    .option('--force', 'end its running sandboxes too')
    .action(
      action(
        async ({ api, context }, [name], options: OutputOptions & { readonly force?: boolean }) => {
          const deleted = await api.call('deleteEnv', {
            params: { name: name as string },
            query: { force: options.force },
          });
          await show(context, options, {
            value: deleted,
            text: () => `${deleted.name} ${deleted.status}\n`,
          });
        },
      ),
    );

const syncLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'sync <env>',
        summary:
          'Renders the pools of all members again from the current template and the env’s ' +
          'overrides. Needed with --auto-update off, and after a partial failure.',
        examples: ['sandpool envs sync web'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [name], options: OutputOptions) => {
      const { env } = await api.call('syncEnv', { params: { name: name as string } });
      await show(context, options, { value: env, text: () => syncedText(env) });
    }),
  );

const syncedText = ({ name, status: { memberCount }, spec: { templateRef } }: NarrowEnv): string =>
  `${name}: ${pluralize(memberCount, 'member')} synced with ` +
  `${templateRef.version === undefined ? '' : `version ${templateRef.version} of `}template ` +
  `${templateRef.name}\n`;

const showEnv = async (
  context: Parameters<typeof show>[0],
  options: OutputOptions,
  { env }: EnvEnvelope,
): Promise<void> => {
  await show(context, options, { value: env, text: () => envFields(env) });
};

const explainLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'explain <env>',
        summary:
          'Explains why an env has its size: what its groups decided and why, what limits them, ' +
          'and what they wait for.',
        examples: ['sandpool envs explain default'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [name], options: OutputOptions) => {
      const { env } = await api.call('getEnv', { params: { name: name as string } });
      const groups = env.spec.autoscaling.groups.map(({ name: group }) => group);
      const decisions = new Map(
        await Promise.all(
          groups.map(
            async (group) =>
              [
                group,
                (await api.call('listDecisions', { params: { name: env.name, groupName: group } }))
                  .items,
              ] as const,
          ),
        ),
      );
      const story: EnvStory = { env, decisions };
      await show(context, options, {
        value: { env, decisions: Object.fromEntries(decisions) },
        text: () => explainEnv(story),
      });
    }),
  );
