import type { Command } from 'commander';
import { configFlags, type NamedTexts } from '../../../daemon/config/config.ts';
import { leaf } from '../../common/leaf.ts';
import type { Action } from '../../common/action.ts';

export const serveLeaf = (action: Action): Command => {
  const command = leaf({
    usage: 'serve',
    summary:
      'Runs the daemon until SIGINT or SIGTERM. Sandboxes keep running; `sandpool stop ' +
      '--all` ends them.',
    examples: ['sandpool serve', 'sandpool serve --listen 127.0.0.1:8090 --data-dir /tmp/sandpool'],
  });
  for (const { flags, description } of configFlags()) command.option(flags, description);
  return command.action(
    action(1, async (_context, _operands, options: NamedTexts) => {
      const { serve } = await import('../../../main.ts');
      await serve({ argvOptions: options });
      return Number(process.exitCode ?? 0);
    }),
  );
};
