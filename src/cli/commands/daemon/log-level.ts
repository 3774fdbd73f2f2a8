import { Argument, type Command } from 'commander';
import type { LogLevelReport } from '../../client/wire.ts';
import type { ServiceAction } from '../../common/action.ts';
import { wholeSeconds } from '../../common/arguments.ts';
import { addConnectionOptions } from '../../common/connection.ts';
import { leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { shortTime } from '../../show/rows.ts';

/** In seconds. */
interface LogLevelOptions extends OutputOptions {
  readonly for?: number;
}

/** `log-level [LEVEL]`: shows or sets the level of the replica that answers. */
export const logLevelLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'log-level',
        summary:
          'Shows or changes how much the running daemon logs, for an admin. Of several ' +
          'replicas that of the one that answers. A restart has the level of the settings ' +
          'again.',
        examples: ['sandpool log-level --admin', 'sandpool log-level debug --for 10m --admin'],
      }),
    ),
  )
    .addArgument(
      new Argument('[level]', 'the least that is logged').choices([
        'trace',
        'debug',
        'info',
        'warn',
        'error',
      ]),
    )
    .option(
      '--for <duration>',
      'for so long, 24h at most, such as 10m; then that of the settings again',
      wholeSeconds(86_400),
    )
    .action(
      action(async ({ api, context }, [level], options: LogLevelOptions) => {
        const report =
          level === undefined
            ? await api.call('getLogLevel')
            : await api.call('setLogLevel', {
                body: {
                  level: level as LogLevelReport['level'],
                  forSeconds: options.for,
                },
              });
        await show(context, options, { value: report, text: () => textOf(report) });
      }),
    );

const textOf = ({ level, configured, until, replica }: LogLevelReport): string => {
  const then = until === undefined ? 'until a restart' : `until ${shortTime(until)}`;
  return (
    `${level}${level === configured ? '' : `, ${then}; ${configured} by the settings`} ` +
    `(${replica})\n`
  );
};
