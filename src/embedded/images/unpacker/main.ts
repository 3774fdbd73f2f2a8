import { text } from 'node:stream/consumers';
import { ImageRefused } from './image-refused.ts';
import type { UnpackerMessage, UnpackOrder } from './orders.ts';
import { makeDurable, prepareImage } from './prepare-image.ts';

/**
 * One order on stdin, lines of JSON on stdout. Archives may be hostile, so the caller restricts
 * writes to the folder of unpacked images.
 */

const PROGRESS_MS = 500;

const main = async (): Promise<void> => {
  const order = JSON.parse(await text(process.stdin)) as UnpackOrder;
  let told = 0;
  const prepared = await prepareImage(order, (progress) => {
    const now = performance.now();
    if (now - told < PROGRESS_MS) return;
    told = now;
    say({ type: 'progress', ...progress });
  });
  say({ type: 'ready', ...prepared });
  makeDurable(order.folder, prepared.image.key);
};

const say = (message: UnpackerMessage): void => {
  process.stdout.write(`${JSON.stringify(message)}\n`);
};

const reasonOf = (error: unknown): string => {
  if (error instanceof ImageRefused) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'the disk is full';
  return `it could not be unpacked${/^E[A-Z0-9]+$/.test(code) ? ` (${code})` : ''}`;
};

process.title = 'sandpool-unpacker';
// New files get exactly the requested modes.
process.umask(0o022);
await main().catch((error: unknown) => {
  say({
    type: 'failed',
    reason: reasonOf(error),
    detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
});
