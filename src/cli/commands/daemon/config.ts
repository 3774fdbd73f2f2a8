import type { Command } from 'commander';
import {
  ConfigFaults,
  configFlags,
  loadConfig,
  type LoadedConfig,
} from '../../../daemon/config/config.ts';
import type { NamedTexts } from '../../../daemon/config/environment.ts';
import { configJson, configYaml } from '../../../daemon/config/shown.ts';
import type { Action } from '../../common/action.ts';
import { type CliContext, print } from '../../common/context.ts';
import { group, leaf } from '../../common/leaf.ts';
import { Option } from 'commander';

export const configGroup = (action: Action): Command =>
  group('config', 'Shows and checks the daemon’s settings', [printLeaf(action), checkLeaf(action)]);

const printLeaf = (action: Action): Command => {
  const command = leaf({
    usage: 'print',
    summary:
      'Shows every setting with its value and the source of the value: a flag, a variable, a ' +
      'file or the default. Secrets are masked. It takes the flags of serve.',
    examples: [
      'sandpool config print',
      'sandpool config print --config sandpool.yaml --listen 127.0.0.1:8090',
      'sandpool config print -o json',
    ],
  }).addOption(
    new Option('-o, --output <form>', 'output format').choices(['yaml', 'json']).default('yaml'),
  );
  for (const { flags, description } of configFlags()) command.option(flags, description);
  return command.action(
    action(1, async (context, _operands, options: NamedTexts) => {
      const loaded = await loadOrTell(context, options);
      if (!loaded) return 1;
      await print(
        context.stdout,
        options['output'] === 'json' ? configJson(loaded.given) : configYaml(loaded.given),
      );
      return 0;
    }),
  );
};

const checkLeaf = (action: Action): Command => {
  const command = leaf({
    usage: 'check [file]',
    summary:
      'Checks a file of settings together with the variables of the environment. Prints ' +
      'every error and its source, and exits with 1 if there is an error. Starts nothing.',
    examples: ['sandpool config check sandpool.yaml', 'SANDPOOL_PIDS_MAX=64 sandpool config check'],
  });
  return command.action(
    action(1, async (context, [file]) => {
      const chosen = typeof file === 'string' ? { config: file } : {};
      const loaded = await loadOrTell(context, chosen);
      if (!loaded) return 1;
      const changed = loaded.given.filter(({ origin }) => origin !== 'default').length;
      await print(
        context.stdout,
        `the configuration is valid: ${loaded.given.length} settings, ${changed} of them not ` +
          'the default\n',
      );
      return 0;
    }),
  );
};

const loadOrTell = async (
  { env, stderr }: CliContext,
  argvOptions: NamedTexts,
): Promise<LoadedConfig | undefined> => {
  try {
    return loadConfig({ env, argvOptions });
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    await print(stderr, `${error.text}\n`);
    return undefined;
  }
};
