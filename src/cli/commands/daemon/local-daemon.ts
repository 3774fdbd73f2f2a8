import type { Command } from 'commander';
import { statSync } from 'node:fs';
import { dataDirOf } from '../../common/connection.ts';
import type { CliContext } from '../../common/context.ts';
import { commandDaemon } from '../../common/control.ts';
import { CliFailure } from '../../common/failure.ts';

export interface Place {
  readonly dataDir?: string;
}

export const withPlace = (command: Command): Command =>
  command.option('--data-dir <dir>', 'data folder of the daemon [SANDPOOL_DATA_DIR]');

/** Rejects with CliFailure. */
export const askLocalDaemon = async (
  context: CliContext,
  options: Place,
  { path, body }: { readonly path: string; readonly body: object },
): Promise<Readonly<Record<string, unknown>>> =>
  await commandDaemon(await dataDirOf(options, context.env), path, body);

/** Even root would leave records and processes that the folder's owner cannot use. */
export const requireOwn = (dataDir: string, hint: string): void => {
  const owner = statSync(dataDir, { throwIfNoEntry: false })?.uid;
  if (owner === undefined || owner === process.getuid?.()) return;
  throw new CliFailure(`${dataDir} belongs to another user (uid ${owner})`, [hint]);
};
