import { lstat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { LeftOut } from './left-out.ts';
import type { SandboxPlace } from './sandbox-place.ts';

const DEPTH = 16;
const PAGE = 10_000;
/** Folders deeper than one list goes, looked at each by a list of its own. */
const MOST_FOLDERS = 1_000;

/**
 * Notes what of a folder in a sandbox is not in its copy here: the service's archive has neither
 * devices, fifos and sockets nor files that its user can't read, and does not name them. Links that
 * were left out have been named.
 */
export const noteMissing = async (
  { api, sandboxId, path: root, signal }: SandboxPlace,
  folder: string,
  leftOut: LeftOut,
): Promise<void> => {
  const waiting = [root];
  for (let looked = 0; waiting.length > 0 && looked < MOST_FOLDERS; looked += 1) {
    const at = waiting.shift() ?? root;
    let cursor: string | undefined;
    do {
      const query = { path: at, depth: DEPTH, limit: PAGE, cursor };
      const page = await api.call('listFiles', { params: { sandboxId }, query, signal });
      for (const { path, kind, base64 } of page.items) {
        if (base64) continue; // a name that a path here may not have
        const below = posix.relative(root, path);
        if (kind === 'Other') leftOut.add(below, 'is neither a file, a folder nor a link');
        else if (kind === 'File' && !(await isHere(join(folder, below))))
          leftOut.add(below, 'can’t be read there, or came meanwhile');
        else if (kind === 'Folder' && depthOf(posix.relative(at, path)) === DEPTH)
          if (waiting.length < MOST_FOLDERS) waiting.push(path);
      }
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }
};

const depthOf = (path: string): number => path.split('/').length;

const isHere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
