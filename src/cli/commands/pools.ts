import type { Command } from 'commander';
import { nameAndValue, wholeNumber } from '../arguments.ts';
import { addConnectionOptions } from '../connection.ts';
import { given } from '../given.ts';
import { group, leaf } from '../leaf.ts';
import type { ServiceAction } from '../action.ts';
import { addOutputOption, type OutputOptions, sayIfMore, show } from '../output.ts';
import { poolFields, poolTable } from '../rows.ts';

const MAX_REPLICAS = 10_000;

/** `pools list|get|create|update|delete`. */
export const poolsGroup = (action: ServiceAction): Command => group('pools', 'Lists, makes, resizes and deletes pools', [
  listLeaf(action), getLeaf(action), createLeaf(action), updateLeaf(action), deleteLeaf(action),
]);

const listLeaf = (action: ServiceAction): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: 'list',
    summary: 'Lists the pools, the newest first.',
    examples: ['sandpool pools list', 'sandpool pools list --all --admin -o wide'],
  })))
    .option('--limit <n>', 'at most so many, 20 unless told', wholeNumber(1, 1_000))
    .option('--offset <n>', 'leave out the first so many', wholeNumber(0, 999_999_999))
    .option('--all', 'of all tenants, for an admin')
    .action(action(async (api, context, _operands, options: OutputOptions & { readonly limit?: number; readonly offset?: number; readonly all?: boolean }) => {
      const page = await api.listPools(given({ limit: options.limit, offset: options.offset, all: options.all }));
      await show(context, options, { value: page, text: (wide) => poolTable(page.items, wide) });
      await sayIfMore(context, page);
    }));

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(addConnectionOptions(leaf({ usage: 'get <pool>', summary: 'Shows one pool.', examples: ['sandpool pools get default'] })))
    .action(action(async (api, context, [name], options: OutputOptions) => {
      const pool = await api.getPool(name as string);
      await show(context, options, { value: pool, text: () => poolFields(pool) });
    }));

interface CreateOptions extends OutputOptions {
  readonly template: string;
  readonly replicas?: number;
  readonly label?: Readonly<Record<string, string>>;
}

const createLeaf = (action: ServiceAction): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: 'create <name>',
    summary: 'Makes a pool of instances of a template, which start at once.',
    examples: ['sandpool pools create big --template default --replicas 20'],
  })))
    .requiredOption('--template <name>', 'the template of its instances')
    .option('--replicas <n>', 'instances, idle and running together; 1 unless told', wholeNumber(0, MAX_REPLICAS))
    .option('--label <name=value>', 'a label; repeatable', nameAndValue)
    .action(action(async (api, context, [name], options: CreateOptions) => {
      const pool = await api.createPool({
        name: name as string, templateName: options.template, ...given({ replicas: options.replicas, labels: options.label }),
      });
      await show(context, options, { value: pool, text: () => poolFields(pool) });
    }));

const updateLeaf = (action: ServiceAction): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: 'update <pool>',
    summary: 'Resizes a pool. Running sandboxes are never touched.',
    examples: ['sandpool pools update default --replicas 8'],
  })))
    .requiredOption('--replicas <n>', 'instances, idle and running together', wholeNumber(0, MAX_REPLICAS))
    .action(action(async (api, context, [name], options: OutputOptions & { readonly replicas: number }) => {
      const pool = await api.updatePool(name as string, { replicas: options.replicas });
      await show(context, options, { value: pool, text: () => poolFields(pool) });
    }));

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(addConnectionOptions(leaf({
    usage: 'delete <pool>',
    summary: 'Deletes a pool with its idle instances. Running sandboxes live on, unless --force.',
    examples: ['sandpool pools delete big', 'sandpool pools delete big --force'],
  })))
    .option('--force', 'end its running sandboxes too')
    .action(action(async (api, context, [name], options: OutputOptions & { readonly force?: boolean }) => {
      const deleted = await api.deletePool(name as string, { force: options.force ?? false });
      await show(context, options, { value: deleted, text: () => `${deleted.name} ${deleted.status}\n` });
    }));
