import type { Command } from 'commander';
import type { Action } from '../../action.ts';
import { dataDirOf } from '../../connection.ts';
import { print } from '../../context.ts';
import { commandDaemon } from '../../control.ts';
import { group, leaf } from '../../leaf.ts';

/** `console login`. */
export const consoleGroup = (action: Action): Command =>
  group('console', 'Lets you in to the console, where people decide approvals', [
    leaf({
      usage: 'login',
      summary:
        'Prints a link that logs one browser in to the console of the running local daemon, ' +
        'once and within five minutes.',
      examples: ['sandpool console login', 'sandpool console login --as ada'],
    })
      .option('--as <operator>', 'whose login it is, where there are operators')
      .option('--data-dir <dir>', 'data folder of the daemon [SANDPOOL_DATA_DIR]')
      .action(
        action(
          1,
          async (
            context,
            _operands,
            options: { readonly as?: string; readonly dataDir?: string },
          ) => {
            const dataDir = await dataDirOf(options, context.env);
            const { url } = await commandDaemon(dataDir, '/console/login', { as: options.as });
            await print(context.stdout, `${String(url)}\n`);
            return 0;
          },
        ),
      ),
  ]);
