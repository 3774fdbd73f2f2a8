import type { Command } from 'commander';
import type { ServiceAction } from '../../common/action.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import { group, leaf } from '../../common/leaf.ts';
import { managersFields } from '../../show/cluster-rows.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';

/** `managers get|cut-off|let-in`; `get` is the default. */
export const managersGroup = (action: ServiceAction): Command =>
  group('managers', 'Shows the managers of this cluster, cuts them off and lets them in', [
    changeLeaf(action, {
      usage: 'cut-off',
      cutOff: true,
      summary:
        'Cuts all managers of this cluster off, for an admin with a key of it: every replica ' +
        'ends its links within seconds and opens none, over restarts too, and promoted keys are ' +
        'good no more. Sandboxes run on.',
    }),
    changeLeaf(action, {
      usage: 'let-in',
      cutOff: false,
      summary: 'Has this cluster link to its managers again, for an admin with a key of it.',
    }),
  ]).addCommand(getLeaf(action), { isDefault: true });

const getLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get',
        summary:
          'Shows the managers of this cluster, whether they are cut off, and how many links ' +
          'there are of the replica that answers, for an admin.',
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
