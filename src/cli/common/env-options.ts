import { type Command, InvalidArgumentError, Option } from 'commander';
import { nameAndValue } from './arguments.ts';
import type { CliContext } from './context.ts';
import { type FileDocument, isObject, readDocument, readText, within } from './document.ts';
import { CliFailure } from './failure.ts';
import { omitUndefined } from '../../lib/plain-data.ts';
import { strategyOf, type Switch, switchOption } from './pool-options.ts';

export interface EnvOptions {
  readonly file?: string;
  readonly template?: string;
  readonly access?: string;
  readonly templateVersion?: string;
  readonly image?: string;
  readonly imagePolicy?: string;
  readonly startupTimeout?: string;
  readonly idleTimeout?: string;
  readonly gateway?: Switch;
  readonly verbose?: Switch;
  readonly autoUpdate?: Switch;
  readonly maxUnavailable?: string;
  readonly volume?: readonly VolumeMount[];
  readonly label?: Readonly<Record<string, string>>;
  readonly annotation?: Readonly<Record<string, string>>;
  readonly docs?: string;
  readonly unset?: readonly string[];
}

interface VolumeMount {
  readonly claimName: string;
  readonly mountPath: string;
  readonly readOnly?: true;
}

/** Follows every version of the template. */
const LATEST = 'latest';

export const OVERRIDES = [
  'image',
  'podCreationImagePolicy',
  'defaultStartupTimeout',
  'defaultIdleTimeout',
  'imagePullSecret',
  'gateway',
  'envd',
  'updateStrategy',
  'volumes',
] as const;

export const addEnvOptions = (command: Command): Command =>
  command
    .option(
      '-f, --file <file>',
      'YAML or JSON with the fields of the REST API; - is standard input. Options override it',
    )
    .option('--template <name>', 'the template of all members')
    .addOption(
      new Option(
        '--access <who>',
        'who may claim: user means only you, team means every user of your team',
      ).choices(['user', 'team']),
    )
    .option(
      '--template-version <version>',
      `template version to stay on; ${LATEST} follows the template`,
    )
    .option('--image <image>', 'the image of the first container, instead of the template’s')
    .addOption(
      new Option('--image-policy <policy>', 'whether new instances use that image').choices([
        'PoolDefaultImage',
        'EnvOverrideImage',
      ]),
    )
    .option('--startup-timeout <duration>', 'how long a start may take, such as 90s')
    .option(
      '--idle-timeout <duration>',
      'end a claimed sandbox after this long without use; 0 is never',
    )
    .addOption(switchOption('--gateway', 'whether endpoints are published'))
    .addOption(switchOption('--verbose', "whether Sandpool's process in the sandbox logs more"))
    .addOption(
      switchOption('--auto-update', 'off: changes to how instances are made wait for sync'),
    )
    .option(
      '--max-unavailable <n>',
      'how many idle instances of a member may be missing during a rollout, such as 2 or 25%',
    )
    .option(
      '--volume <claim:path>',
      'mount one of your volumes; append :ro for read-only. Repeatable; replaces the current ' +
        'mounts',
      volumeMount,
    )
    .option('--label <name=value>', 'a label; repeatable', nameAndValue)
    .option('--annotation <name=value>', 'an annotation; repeatable', nameAndValue)
    .option('--docs <file>', 'text file with a longer documentation for people');

/** Options win over the file. */
export const envFieldsOf = async (
  context: CliContext,
  options: EnvOptions,
): Promise<FileDocument> => {
  const file = options.file === undefined ? {} : await readDocument(context, options.file);
  const overrides = {
    ...omitUndefined({
      image: options.image,
      podCreationImagePolicy: options.imagePolicy,
      defaultStartupTimeout: options.startupTimeout,
      defaultIdleTimeout: options.idleTimeout,
      gateway: options.gateway && { enabled: options.gateway === 'on' },
      envd: options.verbose && { verbose: options.verbose === 'on' },
      volumes: options.volume,
    }),
    ...within(
      'updateStrategy',
      isObject(file['overrides']) ? file['overrides'] : {},
      strategyOf(options),
    ),
    ...Object.fromEntries((options.unset ?? []).map((name) => [name, null])),
  };
  const followed = options.templateVersion === LATEST ? null : options.templateVersion;
  return {
    ...file,
    ...omitUndefined({ access: options.access }),
    ...within('templateRef', file, omitUndefined({ name: options.template, version: followed })),
    ...within('overrides', file, overrides),
    ...within('labels', file, options.label ?? {}),
    ...within('annotations', file, options.annotation ?? {}),
    ...(options.docs === undefined ? {} : { envDocs: await readText(context, options.docs) }),
  };
};

export const nothingToDo = (what: string, example: string): CliFailure =>
  new CliFailure(`there is nothing to ${what}`, [
    `name a change, such as ${example}, or a file: -f FILE`,
  ]);

const volumeMount = (text: string, before: readonly VolumeMount[] = []): readonly VolumeMount[] => {
  const [, claimName, mountPath, readOnly] = /^([^:]+):(\/[^:]*)(:ro)?$/.exec(text) ?? [];
  if (claimName === undefined || mountPath === undefined)
    throw new InvalidArgumentError('It must be CLAIM:/PATH, or CLAIM:/PATH:ro.');
  return [...before, { claimName, mountPath, readOnly: readOnly === undefined ? undefined : true }];
};
