import { type Command, Option } from 'commander';
import { POOL_SIZINGS } from '../../../model/templates/template.ts';
import type { ServiceAction } from '../../common/action.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import {
  agreedName,
  type FileDocument,
  isObject,
  readDocument,
  readText,
} from '../../common/document.ts';
import { type ClusterOption, OF_CLUSTER_OPTION } from '../../common/cluster-option.ts';
import { CliFailure } from '../../common/failure.ts';
import { omitUndefined } from '../../../lib/plain-data.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { addPageOptions, type PageOptions, showPage } from '../../common/paging.ts';
import { templateClusterTable } from '../../show/cluster-rows.ts';
import { templateFields, templateTable } from '../../show/rows.ts';

export const templatesGroup = (action: ServiceAction): Command =>
  group('templates', 'Lists, creates, changes and deletes templates of pools', [
    listLeaf(action),
    getLeaf(action),
    createLeaf(action),
    updateLeaf(action),
    deleteLeaf(action),
  ]);

const listLeaf = (action: ServiceAction): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary: 'Lists the templates for pools, newest first.',
          examples: [
            'sandpool templates list',
            'sandpool templates list -o wide',
            'sandpool templates list --cluster west',
          ],
        }),
      ),
    ),
  )
    .option(...OF_CLUSTER_OPTION)
    .action(
      action(async ({ api, context }, _operands, options: PageOptions & ClusterOption) => {
        const { limit, offset, cluster: clusterID } = options;
        const page = await api.call('listTemplates', {
          query: { clusterID, limit, offset },
        });
        await showPage(context, options, { page, table: templateTable });
      }),
    );

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get <template>',
        summary: 'Shows one template.',
        examples: [
          'sandpool templates get default',
          'sandpool templates get default --manifest > default.yaml',
          'sandpool templates get python --cluster west',
          'sandpool templates get python --clusters --admin',
        ],
      }),
    ),
  )
    .option('--manifest', 'print only its document, as YAML: to edit, store, or apply with kubectl')
    .option(...OF_CLUSTER_OPTION)
    .option(
      '--clusters',
      "on a fleet's manager, for an admin: the state of a global template on each cluster",
    )
    .action(
      action(async ({ api, context }, [name], options: GetOptions) => {
        const { cluster: clusterID } = options;
        const { template } = await api.call('getTemplate', {
          params: { name: name as string },
          query: { clusterID },
        });
        const clusters = options.clusters
          ? (await api.call('listTemplateClusters', { params: { name: template.name } })).items
          : undefined;
        await show(context, options, {
          value: { ...template, ...omitUndefined({ clusters }) },
          text: () => {
            if (options.manifest) return template.crdYaml;
            const table = clusters && `\n${templateClusterTable(clusters)}`;
            return `${templateFields(template)}${table ?? ''}`;
          },
        });
      }),
    );

interface GetOptions extends OutputOptions, ClusterOption {
  readonly manifest?: boolean;
  readonly clusters?: boolean;
}

const createLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'create',
        summary: 'Creates a template, for an admin.',
        examples: [
          'sandpool templates create -f python.yaml --admin',
          'sandpool templates create -f python.yaml --global --admin',
        ],
      }),
    ),
  )
    .requiredOption('-f, --file <file>', 'its document as YAML or JSON; - is standard input')
    .option('--global', "on a fleet's manager: create it on all its clusters")
    .action(
      action(async ({ api, context }, _operands, options: CreateOptions) => {
        const { template } = await api.call('createTemplate', {
          body: {
            crdJson: JSON.stringify(await readDocument(context, options.file)),
            syncSource: options.global ? 'global' : undefined,
          },
        });
        await show(context, options, { value: template, text: () => templateFields(template) });
      }),
    );

interface CreateOptions extends OutputOptions {
  readonly file: string;
  readonly global?: boolean;
}

interface UpdateOptions extends OutputOptions {
  readonly file?: string;
  readonly description?: string;
  readonly docs?: string;
  readonly poolSizing?: (typeof POOL_SIZINGS)[number];
  readonly global?: boolean;
}

const updateLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'update [template]',
        summary:
          'Changes a template, for an admin. Options that you omit stay unchanged. Its pools ' +
          'follow automatically.',
        examples: [
          'sandpool templates update -f python.yaml --admin',
          'sandpool templates update python --description "Python 3.13" --admin',
          'sandpool templates update python --global --admin',
        ],
      }),
    ),
  )
    .option('-f, --file <file>', 'its whole document as YAML or JSON; - is standard input')
    .option('--description <text>', 'description for lists of templates; an empty text removes it')
    .option('--docs <file>', 'text file with a longer documentation for people')
    .addOption(
      new Option('--pool-sizing <sizing>', 'shown to people; has no effect').choices(POOL_SIZINGS),
    )
    .option('--global', "on a fleet's manager: make it global, on all its clusters")
    .option('--no-global', 'make it local again: remove it from all clusters')
    .action(
      action(async ({ api, context }, [operand], options: UpdateOptions) => {
        const document =
          options.file === undefined ? undefined : await readDocument(context, options.file);
        const change = omitUndefined({
          crdJson: document && JSON.stringify(document),
          description: options.description,
          poolSizing: options.poolSizing,
          syncSource: options.global === undefined ? undefined : SYNC_SOURCES[`${options.global}`],
          docs: options.docs === undefined ? undefined : await readText(context, options.docs),
        });
        if (Object.keys(change).length === 0)
          throw new CliFailure('there is nothing to change', [
            'name a file with -f, or use --description, --docs, --pool-sizing or --global',
          ]);
        const { template } = await api.call('updateTemplate', {
          params: { name: agreedName(operand, document && nameIn(document), 'metadata.name') },
          body: change,
        });
        await show(context, options, { value: template, text: () => templateFields(template) });
      }),
    );

const SYNC_SOURCES = { true: 'global', false: '' } as const;

const nameIn = ({ metadata }: FileDocument): unknown =>
  isObject(metadata) ? metadata['name'] : undefined;

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'delete <template...>',
        summary: 'Deletes templates that no pool uses, for an admin.',
        examples: ['sandpool templates delete python --admin'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [names], options: OutputOptions) => {
      for (const name of names as readonly string[]) {
        const deleted = await api.call('deleteTemplate', { params: { name } });
        await show(context, options, {
          value: deleted,
          text: () => `${deleted.name} ${deleted.status}\n`,
        });
      }
    }),
  );
