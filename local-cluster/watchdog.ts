/**
 * Outlives its starter: once its standard input ends, it ends every process of the folder, and
 * removes it. Its argument is the folder.
 */
import { clearFolder } from './watched-folder.ts';

const folder = process.argv[2];
if (!folder) throw new Error('usage: watchdog.ts FOLDER');
process.stdin.resume();
process.stdin.once('end', () => {
  void clearFolder(folder);
});
