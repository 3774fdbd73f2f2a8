import { type Command, Option } from 'commander';
import { nameAndValue, positiveNumber, replicaCount } from './arguments.ts';
import type { CliContext } from './context.ts';
import { type FileDocument, readDocument, within } from './document.ts';
import { omitUndefined } from '../../lib/plain-data.ts';

/** Shared by pools and members of envs. */
export interface SizedOptions {
  readonly file?: string;
  readonly instanceType?: string;
  readonly multiplier?: number;
  readonly cpu?: string;
  readonly memory?: string;
  readonly replicas?: number;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly autoUpdate?: Switch;
  readonly maxUnavailable?: string;
  readonly label?: Readonly<Record<string, string>>;
}

export interface PoolOptions extends SizedOptions {
  readonly template?: string;
  readonly access?: string;
  readonly image?: string;
}

export type Switch = 'on' | 'off';

export const switchOption = (flag: string, description: string): Option =>
  new Option(`${flag} <whether>`, description).choices(['on', 'off']);

export const addFileOption = (command: Command): Command =>
  command.option(
    '-f, --file <file>',
    'YAML or JSON with the fields of the REST API; - is standard input. Options override it',
  );

export const addInstanceTypeOptions = (command: Command): Command =>
  command
    .option('--instance-type <name>', 'instance type: a named size of the first container')
    .option('--multiplier <n>', 'multiplier of the instance type', positiveNumber);

/** With `--auto-update off`, changes wait for `waitsFor`, such as a command. */
export const addRolloutOptions = (command: Command, waitsFor: string): Command =>
  command
    .addOption(
      switchOption('--auto-update', `off: changes to how instances are made wait for ${waitsFor}`),
    )
    .option(
      '--max-unavailable <n>',
      'how many idle instances may be missing during a rollout, such as 2 or 25%',
    )
    .option(
      '--label <name=value>',
      'a label; repeatable; replaces the current labels',
      nameAndValue,
    );

export const addPoolOptions = (command: Command): Command =>
  addRolloutOptions(
    addInstanceTypeOptions(
      addFileOption(command)
        .option('--template <name>', 'the template of its instances')
        .addOption(
          new Option(
            '--access <who>',
            'who may claim: user means only you, team means every user of your team',
          ).choices(['user', 'team']),
        )
        .option('--image <image>', 'the image of the first container, instead of the template’s'),
    )
      .option('--cpu <quantity>', 'CPU of the first container, such as 500m')
      .option('--memory <quantity>', 'memory of the first container, such as 256Mi')
      .option('--replicas <n>', 'instances, idle and running together; 1 by default', replicaCount)
      .option('--min-replicas <n>', 'minimum of replicas', replicaCount)
      .option('--max-replicas <n>', 'maximum of replicas', replicaCount),
    'sync-template',
  );

/** Options win over the file. */
export const poolFieldsOf = async (
  context: CliContext,
  options: PoolOptions,
): Promise<FileDocument> => {
  const file = options.file === undefined ? {} : await readDocument(context, options.file);
  const overrides = omitUndefined({ image: options.image });
  return {
    ...file,
    ...omitUndefined({
      templateName: options.template,
      access: options.access,
      instanceType: options.instanceType,
      multiplier: options.multiplier,
      cpu: options.cpu,
      memory: options.memory,
      replicas: options.replicas,
      minReplicas: options.minReplicas,
      maxReplicas: options.maxReplicas,
      labels: options.label,
    }),
    ...within('overrides', file, overrides),
    ...within('updateStrategy', file, strategyOf(options)),
  };
};

export const strategyOf = ({
  autoUpdate,
  maxUnavailable,
}: Pick<PoolOptions, 'autoUpdate' | 'maxUnavailable'>): object =>
  omitUndefined({
    autoUpdate: autoUpdate === undefined ? undefined : autoUpdate === 'on',
    maxUnavailable,
  });
