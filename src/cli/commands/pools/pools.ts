import { type Command, Option } from 'commander';
import type { Body } from '../../client/operation-request.ts';
import { addConnectionOptions, addNamespacedOptions } from '../../common/connection.ts';
import { agreedName, type FileDocument, isObject } from '../../common/document.ts';
import { CliFailure } from '../../common/failure.ts';
import { CLUSTER_OPTION, type ClusterOption } from '../../common/cluster-option.ts';
import { omitUndefined } from '../../../lib/plain-data.ts';
import { group, leaf } from '../../common/leaf.ts';
import type { ServiceAction } from '../../common/action.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { addPageOptions, type PageOptions, showPage } from '../../common/paging.ts';
import { addPoolOptions, poolFieldsOf, type PoolOptions } from '../../common/pool-options.ts';
import { poolFields, poolTable } from '../../show/rows.ts';
import { POOL_PHASES, type PoolPhase } from '../../../model/pools/pool.ts';
import { rolloutGroup } from './pool-rollout.ts';

type ListOptions = PageOptions &
  ClusterOption & { readonly all?: boolean; readonly phase?: PoolPhase };

export const poolsGroup = (action: ServiceAction): Command =>
  group('pools', 'Lists, creates, changes and deletes pools', [
    listLeaf(action),
    getLeaf(action),
    createLeaf(action),
    updateLeaf(action),
    rolloutGroup(action),
    syncTemplateLeaf(action),
    deleteLeaf(action),
  ]);

const listLeaf = (action: ServiceAction): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary: 'Lists the pools, newest first.',
          examples: [
            'sandpool pools list',
            'sandpool pools list --all --admin -o wide',
            'sandpool pools list --phase Failed --all --admin',
            'sandpool pools list --cluster west',
          ],
        }),
      ),
    ),
  )
    .option('--all', 'of all tenants, for an admin')
    .addOption(new Option('--phase <phase>', 'only in this phase').choices(POOL_PHASES))
    .option(...CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: ListOptions) => {
        const { limit, offset, all, phase, cluster: clusterID } = options;
        const page = await api.call('listPools', {
          query: { clusterID, limit, offset, all, phase },
        });
        await showPage(context, options, { page, table: poolTable });
      }),
    );

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'get <pool>',
        summary: 'Shows one pool.',
        examples: ['sandpool pools get default'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [name], options: OutputOptions) => {
      const { template: pool } = await api.call('getPool', { params: { name: name as string } });
      await show(context, options, { value: pool, text: () => poolFields(pool) });
    }),
  );

const createLeaf = (action: ServiceAction): Command =>
  addPoolOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'create [name]',
          summary: 'Creates a pool from a template, or from a file. Its instances start at once.',
          examples: [
            'sandpool pools create big --template default --replicas 20',
            'sandpool pools create -f pool.yaml',
            'sandpool pools create small --template default --instance-type small --multiplier 2',
            'sandpool pools create big --template default --cluster west',
          ],
        }),
      ),
    ),
  )
    .option('--cluster <clusterID>', 'cluster of the pool; by default the cluster that answers')
    .action(
      action(
        async (
          { api, context },
          [operand],
          options: OutputOptions & PoolOptions & ClusterOption,
        ) => {
          const spec: FileDocument = {
            ...(await poolFieldsOf(context, options)),
            ...omitUndefined({ clusterID: options.cluster }),
          };
          const name = agreedName(operand, spec['name'], 'name');
          if (
            spec['templateName'] === undefined &&
            spec['template'] === undefined &&
            !hasImage(spec)
          ) {
            throw new CliFailure('no template was given', [
              'name a template: --template NAME (available: sandpool templates list)',
              'or use a file: -f FILE',
            ]);
          }
          const { template: pool } = await api.call('createPool', {
            body: { ...spec, name } as Body<'createPool'>,
          });
          await show(context, options, { value: pool, text: () => poolFields(pool) });
        },
      ),
    );

const hasImage = ({ overrides }: FileDocument): boolean =>
  isObject(overrides) && overrides['image'] !== undefined;

const updateLeaf = (action: ServiceAction): Command =>
  addPoolOptions(
    addOutputOption(
      addNamespacedOptions(
        leaf({
          usage: 'update [pool]',
          summary:
            'Changes a pool. Options that you omit stay unchanged. Running sandboxes are never ' +
            'changed. Idle instances are replaced if the change affects how instances are made.',
          examples: [
            'sandpool pools update big --replicas 8',
            'sandpool pools update big --memory 512Mi',
            'sandpool pools update -f pool.yaml',
          ],
        }),
      ),
    ),
  ).action(
    action(async ({ api, context }, [operand], options: OutputOptions & PoolOptions) => {
      const { name: inFile, ...change } = await poolFieldsOf(context, options);
      const name = agreedName(operand, inFile, 'name');
      if (Object.keys(change).length === 0)
        throw new CliFailure('there is nothing to change', [
          'name a change, such as --replicas 8, or a file: -f FILE',
        ]);
      const { template: pool } = await api.call('updatePool', {
        params: { name },
        body: change as Body<'updatePool'>,
      });
      await show(context, options, { value: pool, text: () => poolFields(pool) });
    }),
  );

const syncTemplateLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'sync-template <pool>',
        summary:
          'Applies the current template and the owner’s settings to a pool. Only needed with ' +
          '--auto-update off.',
        examples: [
          'sandpool pools sync-template big --preview',
          'sandpool pools sync-template big',
        ],
      }),
    ),
  )
    .option('--preview', 'only show the resulting specification of instances')
    .action(
      action(
        async (
          { api, context },
          [name],
          options: OutputOptions & { readonly preview?: boolean },
        ) => {
          if (options.preview) {
            const preview = await api.call('previewPoolSync', { params: { name: name as string } });
            return await show(context, options, { value: preview, text: () => preview.specYaml });
          }
          const { template: pool } = await api.call('syncPool', {
            params: { name: name as string },
          });
          await show(context, options, { value: pool, text: () => poolFields(pool) });
        },
      ),
    );

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'delete <pool>',
        summary:
          'Deletes a pool with its idle instances. Running sandboxes keep running, unless ' +
          '--force is given.',
        examples: ['sandpool pools delete big', 'sandpool pools delete big --force'],
      }),
    ),
  )
    .option('--force', 'end its running sandboxes too')
    .action(
      action(
        async ({ api, context }, [name], options: OutputOptions & { readonly force?: boolean }) => {
          const deleted = await api.call('deletePool', {
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
