import type { Command } from 'commander';
import type { Action } from '../common/action.ts';
import { withInterrupts } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { download } from '../copy/download.ts';
import { LeftOut } from '../copy/left-out.ts';
import { placeOf } from '../copy/place.ts';
import { sandboxPlace } from '../copy/sandbox-place.ts';
import { upload } from '../copy/upload.ts';
import { CliFailure } from '../common/failure.ts';
import { leaf } from '../common/leaf.ts';
import { progressOn } from '../terminal/progress.ts';

export const cpLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'cp <from> <to>',
      summary:
        'Copies a file or a folder into a running sandbox or out of it. A path in a sandbox is ' +
        'SANDBOX:PATH. - is standard input, which must not be silent for a minute, or standard ' +
        'output. A file replaces its target only when it has arrived completely. An ' +
        'interrupted copy cannot be resumed; the command prints how far it came and the state ' +
        'of the target. Copying a folder out of a sandbox skips links that lead out of the ' +
        'folder, and special files such as devices; the command names what it skipped.',
      examples: [
        'sandpool cp data.csv "$SANDBOX:/tmp/"',
        'sandpool cp "$SANDBOX:/tmp/result file.txt" .',
        'sandpool cp -r src "$SANDBOX:work"',
        'tar -c src | sandpool cp - "$SANDBOX:/tmp/src.tar"',
        'sandpool cp "$SANDBOX:/etc/os-release" - | head -1',
      ],
    }),
  )
    .option('-r, --recursive', 'copy a folder with everything in it (the default)')
    .action(
      action(1, async (context, [from, to], options: ConnectionOptions) => {
        const [source, target] = [placeOf(String(from)), placeOf(String(to))];
        if ((source.kind === 'sandbox') === (target.kind === 'sandbox')) {
          throw new CliFailure(
            source.kind === 'sandbox'
              ? 'both paths are in sandboxes: copy to this machine first'
              : 'neither path is in a sandbox',
            ['a path in a sandbox is SANDBOX:PATH; list the ids: sandpool sandboxes list'],
          );
        }
        const api = await connect(options, context);
        const progress = progressOn(context);
        const leftOut = new LeftOut();
        const copy = { context, progress, leftOut };
        try {
          return await withInterrupts(async (signal) => {
            if (target.kind === 'sandbox')
              await upload(copy, source, await sandboxPlace(api, target, signal));
            if (source.kind === 'sandbox')
              await download(copy, await sandboxPlace(api, source, signal), target);
            return 0;
          });
        } finally {
          progress.end();
          leftOut.tell(context);
          api.close();
        }
      }),
    );
