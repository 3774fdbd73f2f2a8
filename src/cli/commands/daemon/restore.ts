import type { Command } from 'commander';
import type { Action } from '../../common/action.ts';
import { dataDirOf } from '../../common/connection.ts';
import { print } from '../../common/context.ts';
import { CliFailure } from '../../common/failure.ts';
import { leaf } from '../../common/leaf.ts';
import { type Place, requireOwn, withPlace } from './local-daemon.ts';

export const restoreLeaf = (action: Action): Command =>
  withPlace(
    leaf({
      usage: 'restore <file>',
      summary:
        'Restores the database and the keys from a backup into the data folder of a stopped ' +
        'daemon. Sandboxes in the backup continue if they still run; idle ones are replaced. ' +
        'The replaced files are moved to a new folder in the data folder.',
      examples: [
        'sandpool restore sandpool-backup.tar.gz',
        'sandpool restore sandpool-backup.tar.gz --data-dir /srv/sandpool',
      ],
    }),
  ).action(
    action(1, async (context, [file], options: Place) => {
      const dataDir = await dataDirOf(options, context.env);
      requireOwn(dataDir, 'restore as that user; nothing was replaced');
      const { restoreBackup, RestoreRefused } = await import('../../../daemon/restore.ts');
      try {
        const aside = await restoreBackup(String(file), { dataDir, now: new Date() });
        await print(
          context.stdout,
          `restored ${dataDir}\n` +
            (aside === undefined ? '' : `replaced files: ${aside}\n`) +
            'start the daemon: sandpool serve\n',
        );
        return 0;
      } catch (error) {
        if (!(error instanceof RestoreRefused)) throw error;
        throw new CliFailure(error.message, [error.hint], { cause: error });
      }
    }),
  );
