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

export const logLevelLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'log-level',
        summary:
          'Shows or changes the log level of the running daemon, for an admin. With several ' +
          'replicas, applies to the replica that answers. A restart restores the level of the ' +
          'settings.',
        examples: ['sandpool log-level --admin', 'sandpool log-level debug --for 10m --admin'],
      }),
    ),
  )
    .addArgument(
      new Argument('[level]', 'lowest level to log').choices([
        'trace',
        'debug',
        'info',
        'warn',
        'error',
      ]),
    )
    .option(
      '--for <duration>',
      'how long, at most 24h, such as 10m; then the level of the settings applies again',
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
    `${level}${level === configured ? '' : `, ${then}; ${configured} in the settings`} ` +
    `(${replica})\n`
  );
};
