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

/** `cp FROM TO`: copies a file or a folder into or out of a sandbox. */
export const cpLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'cp <from> <to>',
      summary:
        'Copies a file or a folder into a running sandbox or out of it. A path in a ' +
        'sandbox is SANDBOX:PATH; - is the standard input, which may not be silent for a minute, ' +
        'or the standard output. A file takes its place ' +
        'when all of it has arrived. A copy that breaks off is not resumed; it says how far it ' +
        'came and how the target is. Of a folder that comes from a sandbox, links out of it are ' +
        'left out, and named, as is what is neither a file, a folder nor a link.',
      examples: [
        'sandpool cp data.csv "$SANDBOX:/tmp/"',
        'sandpool cp "$SANDBOX:/tmp/result file.txt" .',
        'sandpool cp -r src "$SANDBOX:work"',
        'tar -c src | sandpool cp - "$SANDBOX:/tmp/src.tar"',
        'sandpool cp "$SANDBOX:/etc/os-release" - | head -1',
      ],
    }),
  )
    .option('-r, --recursive', 'a folder with all that is in it, which is the default')
    .action(
      action(1, async (context, [from, to], options: ConnectionOptions) => {
        const [source, target] = [placeOf(String(from)), placeOf(String(to))];
        if ((source.kind === 'sandbox') === (target.kind === 'sandbox')) {
          throw new CliFailure(
            source.kind === 'sandbox'
              ? 'both are in sandboxes: copy to here first'
              : 'neither is in a sandbox',
            ['a path in a sandbox is SANDBOX:PATH; sandpool sandboxes list shows the ids'],
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
