import { type Command, Option } from 'commander';
import { fileURLToPath } from 'node:url';
import type { NamedTexts } from '../../../daemon/config/environment.ts';
import { readPidFile } from '../../../daemon/process/pid-file.ts';
import type { Finding } from '../../../daemon/doctor/finding.ts';
import type { Action } from '../../common/action.ts';
import type { CliContext } from '../../common/context.ts';
import { leaf } from '../../common/leaf.ts';
import { type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';

/** Flags of `serve` that affect the checks. */
const FLAGS = [
  '--config',
  '--data-dir',
  '--listen',
  '--compatible-api-listen',
  '--metrics-listen',
  '--isolation',
  '--uid-range-first',
  '--uid-range-count',
];

export const doctorLeaf = async (action: Action): Promise<Command> => {
  const { configFlags } = await import('../../../daemon/config/config.ts');
  const command = leaf({
    usage: 'doctor',
    summary:
      'Checks for problems that keep the daemon from working on this machine, and says how ' +
      'to fix them. Works with and without a running daemon, and changes nothing. Exits with ' +
      '1 if there is a problem; warnings do not count.',
    examples: [
      'sandpool doctor',
      'sandpool doctor -o json',
      'sandpool doctor --data-dir /srv/sandpool',
    ],
  }).addOption(
    new Option('-o, --output <form>', 'output format')
      .choices(['table', 'json', 'yaml'])
      .default('table'),
  );
  for (const { flags, description } of configFlags())
    if (FLAGS.includes(flags.split(' ')[0] ?? '')) command.option(flags, description);
  return command.action(
    action(1, async (context, _operands, options: NamedTexts & OutputOptions) => {
      const findings = await examination(context, options);
      const good = !findings.some(({ status }) => status === 'problem');
      await show(context, options, { value: { good, findings }, text: () => textOf(findings) });
      return good ? 0 : 1;
    }),
  );
};

const examination = async (
  { env }: CliContext,
  options: NamedTexts,
): Promise<readonly Finding[]> => {
  const [{ ConfigFaults, isAskedFor, loadConfig }, { examine }] = await Promise.all([
    import('../../../daemon/config/config.ts'),
    import('../../../daemon/doctor/doctor.ts'),
  ]);
  const look = async (argvOptions: NamedTexts, from: NamedTexts): Promise<readonly Finding[]> => {
    const { config, origins } = loadConfig({ env: from, argvOptions });
    return await examine({
      config,
      isGiven: (setting) => isAskedFor(origins[setting]),
      daemon: readPidFile(config.dataDir),
      bwrapPath: '/usr/bin/bwrap',
      etc: '/etc',
      uid: process.getuid?.(),
      launcherPath: fileURLToPath(
        new URL('../../../../native/build-output/launcher', import.meta.url),
      ),
    });
  };
  try {
    return [
      { name: 'configuration', status: 'ok', message: 'no faults' },
      ...(await look(options, env)),
    ];
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    const faults = error.message.split('\n').map((message): Finding => ({
      name: 'configuration',
      status: 'problem',
      message,
      advice: 'correct it; sandpool config check shows all errors',
    }));
    // Defaults, with the given data folder.
    const { HOME, SANDPOOL_DATA_DIR } = env;
    const { dataDir } = options;
    return [
      ...faults,
      ...(await look(dataDir === undefined ? {} : { dataDir }, { HOME, SANDPOOL_DATA_DIR })),
    ];
  }
};

const textOf = (findings: readonly Finding[]): string => {
  const lines = table(
    ['STATUS', 'WHAT', 'FOUND'],
    findings.map(({ status, name, message }) => [status, name, message]),
  )
    .trimEnd()
    .split('\n');
  const advised = findings.flatMap(({ advice }, index) => [
    lines[index + 1] ?? '',
    ...(advice === undefined ? [] : [`         → ${advice}`]),
  ]);
  const count = (wanted: Finding['status']): number =>
    findings.filter(({ status }) => status === wanted).length;
  const sum = `${count('problem')} problems, ${count('warning')} warnings`;
  return `${[lines[0] ?? '', ...advised, '', sum].join('\n')}\n`;
};
