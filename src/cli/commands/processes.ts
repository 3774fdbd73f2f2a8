import { type Command, Option } from 'commander';
import type { ProcessEnvelope } from '../client/wire.ts';
import { PROCESS_SIGNALS, type ProcessSignal } from '../../model/process.ts';
import type { Action, ServiceAction } from '../common/action.ts';
import { withInterrupts } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { print } from '../common/context.ts';
import { leaf, SANDPOOL_FAILED } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { table } from '../show/table.ts';
import { printable } from '../common/printable.ts';
import { streamProcess } from './stream-process.ts';

interface KillOptions {
  readonly signal: ProcessSignal;
}

export const psLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'ps <sandbox>',
        summary: 'Lists the processes of a sandbox. Includes processes that ended recently.',
        examples: ['sandpool ps "$SANDBOX"'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [sandboxId], options: OutputOptions) => {
      const { items } = await api.call('listProcesses', {
        params: { sandboxId: String(sandboxId) },
      });
      await show(context, options, { value: { items }, text: () => processTable(items) });
    }),
  );

export const attachLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'attach <sandbox> <process>',
      summary:
        'Prints the output of a process in a sandbox. Begins with the stored output, at most ' +
        "the last 1 MiB, and exits with the process's exit code. Interrupting this command " +
        'also interrupts the process.',
      usageExit: SANDPOOL_FAILED,
      examples: ['sandpool attach "$SANDBOX" "$PROCESS"'],
    }),
  )
    .option('-i, --interactive', 'forward standard input until its end')
    .action(
      action(
        SANDPOOL_FAILED,
        async (
          context,
          [sandbox, id],
          options: ConnectionOptions & { readonly interactive?: boolean },
        ) => {
          const [sandboxId, processId] = [String(sandbox), String(id)];
          const api = await connect(options, context);
          try {
            return await withInterrupts(
              async (interrupts) =>
                await streamProcess({
                  api,
                  context,
                  sandboxId,
                  processId,
                  input: options.interactive ?? false,
                  interrupts,
                  events: (signal) =>
                    api.stream('followProcess', {
                      params: { sandboxId, processId },
                      query: { encoding: 'base64', pace: true },
                      signal,
                    }),
                }),
              context.stdout,
            );
          } finally {
            api.close();
          }
        },
      ),
    );

export const killLeaf = (action: ServiceAction): Command =>
  addConnectionOptions(
    leaf({
      usage: 'kill <sandbox> <process>',
      summary: 'Signals a process of a sandbox. Its whole process group gets the signal.',
      examples: [
        'sandpool kill "$SANDBOX" "$PROCESS"',
        'sandpool kill --signal KILL "$SANDBOX" "$PROCESS"',
      ],
    }),
  )
    .addOption(
      new Option('--signal <name>', 'the signal to send').choices(PROCESS_SIGNALS).default('TERM'),
    )
    .action(
      action(async ({ api, context }, [sandboxId, processId], options: KillOptions) => {
        await api.call('signalProcess', {
          params: { sandboxId: String(sandboxId), processId: String(processId) },
          body: { signal: options.signal },
        });
        await print(context.stdout, `${String(processId)} signalled\n`);
      }),
    );

const processTable = (processes: readonly ProcessEnvelope['process'][]): string =>
  table(
    ['PROCESS', 'PID', 'STATUS', 'STARTED', 'TAG', 'COMMAND'],
    processes.map(({ processId, pid, status, exitCode, oomKilled, startedAt, tag, command }) => [
      processId,
      String(pid),
      status === 'Exited'
        ? `Exited (${exitCode ?? '?'}${oomKilled ? ', out of memory' : ''})`
        : status,
      startedAt.slice(0, 19),
      printable(tag ?? '-'),
      printable(command.join(' ')).slice(0, 60),
    ]),
  );
