/**
 * A process of its own that outlives a killed test: once its standard input ends, it ends every process that has to do with
 * the folder, also what `exec` started in pods, and removes the folder. Its argument is the folder.
 */
import { rmSync } from 'node:fs';
import { endLeftovers } from '../../../script/test-leftovers.ts';

const folder = process.argv[2];
if (!folder) throw new Error('usage: watchdog.ts FOLDER');
process.stdin.resume();
process.stdin.once('end', () => {
  void endLeftovers({ session: -1, folder }, 0).then(() => rmSync(folder, { recursive: true, force: true }));
});
