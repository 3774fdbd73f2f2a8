import type { Command } from 'commander';
import type { NamedTexts } from '../../../daemon/config/environment.ts';
import { type PidFile, isRunning, readPidFile } from '../../../daemon/process/pid-file.ts';
import { dataDirOf } from '../../common/connection.ts';
import { type CliContext, print } from '../../common/context.ts';
import { CliFailure } from '../../common/failure.ts';
import { leaf } from '../../common/leaf.ts';
import type { Action } from '../../common/action.ts';
import { requireOwn } from './local-daemon.ts';

interface StopOptions {
  readonly all?: boolean;
  readonly dataDir?: string;
  readonly config?: string;
}

/** Longer than the 10 s that the daemon allows itself. */
const STOP_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 50;

export const stopLeaf = (action: Action): Command =>
  leaf({
    usage: 'stop',
    summary:
      'Stops the local daemon and its helper processes. Sandboxes keep running, and the next ' +
      'start finds them, unless --all is given.',
    examples: [
      'sandpool stop',
      'sandpool stop --all',
      'sandpool stop --all --data-dir /tmp/sandpool',
    ],
  })
    .option('--all', 'end all running and idle sandboxes too; pools and keys stay')
    .option('--data-dir <dir>', 'data folder of the daemon [SANDPOOL_DATA_DIR]')
    .option('--config <file>', 'the daemon’s file of settings [SANDPOOL_CONFIG]')
    .action(
      action(1, async (context, _operands, options: StopOptions) => {
        const dataDir = await dataDirOf(options, context.env);
        if (options.all) requireOwn(dataDir, 'end its sandboxes as that user; nothing was stopped');
        const daemon = readPidFile(dataDir);
        if (daemon) {
          await endDaemon(daemon);
          await print(context.stdout, `the daemon (pid ${daemon.pid}) has stopped\n`);
        } else {
          await print(context.stdout, `no daemon is running on ${dataDir}\n`);
        }
        if (options.all)
          await endInstances(context, {
            dataDir,
            ...(options.config === undefined ? {} : { config: options.config }),
          });
        return 0;
      }),
    );

const endDaemon = async (daemon: PidFile): Promise<void> => {
  try {
    process.kill(daemon.pid, 'SIGTERM');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPERM') {
      throw new CliFailure(`the daemon (pid ${daemon.pid}) belongs to another user`, [
        'stop it as that user',
      ]);
    }
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
  const deadline = Date.now() + STOP_WITHIN_MS;
  while (isRunning(daemon)) {
    if (Date.now() > deadline)
      throw new CliFailure(
        `the daemon (pid ${daemon.pid}) did not stop within ${STOP_WITHIN_MS / 1_000} s`,
        [`as a last resort: kill -9 ${daemon.pid}`],
      );
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY_MS);
    });
  }
};

const endInstances = async (
  { stdout, stderr }: CliContext,
  argvOptions: NamedTexts,
): Promise<void> => {
  const { endAll } = await import('../../../daemon/end-all.ts');
  const tell = (fields: Readonly<Record<string, unknown>>, event: string): void => {
    const { error } = fields;
    stderr.write(`sandpool: ${event}${error instanceof Error ? `: ${error.message}` : ''}\n`);
  };
  const count = await endAll(argvOptions, { warn: tell, error: tell });
  await print(
    stdout,
    count === 0
      ? 'there were no sandboxes\n'
      : `${count} ${count === 1 ? 'sandbox has' : 'sandboxes have'} ended\n`,
  );
};
