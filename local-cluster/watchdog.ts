/**
 * A process of its own that outlives whoever started it: once its standard input ends, because that
 * has ended or was killed, it ends every process that belongs to the folder, and removes it. Its
 * argument is the folder.
 */
import { clearFolder } from './watched-folder.ts';

const folder = process.argv[2];
if (!folder) throw new Error('usage: watchdog.ts FOLDER');
process.stdin.resume();
process.stdin.once('end', () => {
  void clearFolder(folder);
});
