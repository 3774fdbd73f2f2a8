import { Argument, type Command } from 'commander';
import type { Action } from '../common/action.ts';
import { completionScript, SHELLS } from '../completion/scripts.ts';
import { print } from '../common/context.ts';
import { leaf } from '../common/leaf.ts';

export const completionLeaf = (action: Action): Command =>
  leaf({
    usage: 'completion',
    summary:
      'Prints a script that completes sandpool’s commands, options, and names of pools and ' +
      'sandboxes. Load it when the shell starts.',
    examples: [
      'source <(sandpool completion bash)',
      'source <(sandpool completion zsh)',
      'sandpool completion fish | source',
    ],
  })
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(
      action(1, async ({ stdout }, [name]) => {
        await print(stdout, completionScript(SHELLS.find((shell) => shell === name) ?? 'bash'));
        return 0;
      }),
    );
