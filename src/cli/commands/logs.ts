import type { Command } from 'commander';
import { parseDuration } from '../../model/durations.ts';
import type { Query } from '../client/operation-request.ts';
import type { StreamEvent } from '../client/event-stream.ts';
import type { Action } from '../common/action.ts';
import { durationText, wholeNumber } from '../common/arguments.ts';
import { withInterrupts } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { type CliContext, print, say } from '../common/context.ts';
import { followed } from '../terminal/following.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import { CliFailure } from '../common/failure.ts';
import { leaf } from '../common/leaf.ts';
import { printEvent } from './stream-process.ts';

interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: number;
  readonly timestamps?: boolean;
  readonly container?: string;
  readonly process?: string;
}

export const logsLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'logs <sandbox>',
      summary:
        'Prints the output of a sandbox’s main process. Works even if the sandbox has ' +
        'ended, as long as the output is stored. Output of other processes is not ' +
        'included: sandpool ps lists them. With -f it continues until the sandbox ends. ' +
        'With --process it prints the last 1 MiB of a process that has ended. For a ' +
        'running process, use -f; it also prints new output until the process ends. ' +
        'Interrupting this command does not end anything in the sandbox.',
      examples: [
        'sandpool logs "$SANDBOX"',
        'sandpool logs -f --tail 10 "$SANDBOX"',
        'sandpool logs --since 5m --timestamps "$SANDBOX"',
        'sandpool logs -f "$SANDBOX" --process "$PROCESS"',
      ],
    }),
  )
    .option('-f, --follow', 'continue with new output')
    .option('--since <duration>', 'only output of this last period, such as 5m', durationText)
    .option('--tail <n>', 'number of last lines; 200 by default', wholeNumber(1, 10_000))
    .option('--timestamps', 'with the time of each line')
    .option('--container <name>', 'from this container, if there are several')
    .option('--process <id>', 'of this process, named by sandpool exec --detach or ps')
    .action(
      action(1, async (context, [sandbox], options: LogsOptions) => {
        checkProcess(options);
        const api = await connect(options, context);
        const query: Query<'getSandboxLogs'> = {
          tailLines: options.tail,
          timestamps: options.timestamps,
          container: options.container,
          sinceSeconds:
            options.since === undefined
              ? undefined
              : Math.max(1, Math.ceil((parseDuration(options.since) ?? 0) / 1_000)),
        };
        try {
          return await withInterrupts(async (signal) => {
            if (options.process !== undefined)
              await printProcess(
                { api, context, signal, follow: options.follow ?? false },
                String(sandbox),
                options.process,
              );
            else if (options.follow) {
              await sayWhose(context, String(sandbox));
              const params = { sandboxId: String(sandbox) };
              const open = (lastEventId: string | undefined) =>
                api.stream('getSandboxLogs', {
                  ...{ params, query: { ...query, follow: true } },
                  ...{ signal, lastEventId },
                });
              await printLines(context, followed({ open, signal }));
            } else {
              const { logs, truncated } = await api.call('getSandboxLogs', {
                params: { sandboxId: String(sandbox) },
                query,
                signal,
              });
              await print(context.stdout, logs === '' || logs.endsWith('\n') ? logs : `${logs}\n`);
              await sayWhose(context, String(sandbox));
              if (truncated) await say(context, 'there are earlier lines; --tail shows more');
            }
            return 0;
          }, context.stdout);
        } finally {
          api.close();
        }
      }),
    );

/** Only on a terminal: a program gets only the lines. */
const sayWhose = async (context: CliContext, sandboxId: string): Promise<void> => {
  if (context.stdout.isTTY)
    await say(
      context,
      'these lines are from the main process; for the output of another process:',
      `sandpool ps ${sandboxId}, then: sandpool logs ${sandboxId} --process PROCESS`,
    );
};

/** A process's output lacks lines and times. */
const checkProcess = (options: LogsOptions): void => {
  if (options.process === undefined) return;
  for (const name of ['since', 'tail', 'timestamps', 'container'] as const)
    if (options[name] !== undefined)
      throw new CliFailure(`--${name} cannot be used with the output of a process`);
};

const printProcess = async (
  {
    api,
    context,
    signal,
    follow,
  }: {
    readonly api: SandpoolClient;
    readonly context: CliContext;
    readonly signal: AbortSignal;
    readonly follow: boolean;
  },
  sandboxId: string,
  processId: string,
): Promise<void> => {
  const params = { sandboxId, processId };
  const { process } = await api.call('getProcess', { params, signal });
  if (process.status === 'Running' && !follow)
    throw new CliFailure('the process is still running: use -f to see its output', [
      `print its output and follow it: sandpool logs -f ${sandboxId} --process ${processId}`,
    ]);
  const open = (from: string | undefined) =>
    api.stream('followProcess', { params, query: { encoding: 'base64', from }, signal });
  for await (const event of followed({ open, signal })) {
    if (event.type === 'end') return;
    await printEvent(event, context);
  }
};

const printLines = async (
  context: CliContext,
  events: AsyncIterable<StreamEvent<'getSandboxLogs'>>,
): Promise<void> => {
  for await (const { type, data } of events) {
    if (type === 'end') return;
    if (type === 'reset') await say(context, 'older lines are no longer stored');
    else if (type === 'message') {
      const time = data.timestamp === undefined ? '' : `${data.timestamp} `;
      await print(context.stdout, `${time}${data.line}${data.partial ? '' : '\n'}`);
    }
  }
};
