import type { Command } from 'commander';
import type { ServiceAction } from '../../common/action.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import { group, leaf } from '../../common/leaf.ts';
import { managersFields } from '../../show/cluster-rows.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';

export const managersGroup = (action: ServiceAction): Command =>
  group('managers', 'Shows the managers of this cluster, cuts them off and allows them again', [
    changeLeaf(action, {
      usage: 'cut-off',
      cutOff: true,
      summary:
        'Cuts off all managers of this cluster, for an admin with a key of this cluster. Every ' +
        'replica closes its links within seconds and opens no new ones, even after a restart. ' +
        'Promoted keys stop working. Sandboxes keep running.',
    }),
    changeLeaf(action, {
      usage: 'let-in',
      cutOff: false,
      summary:
        'Allows this cluster to link to its managers again, for an admin with a key of this ' +
        'cluster.',
    }),
  ]).addCommand(getLeaf(action), { isDefault: true });

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get',
        summary:
          'Shows the managers of this cluster, whether they are cut off, and the number of links ' +
          'of the replica that answers, for an admin.',
        examples: ['sandpool managers --admin', 'sandpool managers get --admin -o json'],
      }),
    ),
  ).action(
    action(async ({ api, context }, _operands, options: OutputOptions) => {
      const managers = await api.call('getManagers');
      await show(context, options, { value: managers, text: () => managersFields(managers) });
    }),
  );

interface Change {
  readonly usage: string;
  readonly summary: string;
  readonly cutOff: boolean;
}

const changeLeaf = (action: ServiceAction, { usage, summary, cutOff }: Change): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({ usage, summary, examples: [`sandpool managers ${usage} --admin`] }),
    ),
  ).action(
    action(async ({ api, context }, _operands, options: OutputOptions) => {
      const managers = await api.call('setManagers', { body: { cutOff } });
      await show(context, options, { value: managers, text: () => managersFields(managers) });
    }),
  );
