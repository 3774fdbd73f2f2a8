import {
  closeSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { Batch, Write, Written } from './writer.ts';

/**
 * Applies steps below one folder. Every parent folder was made here, so no write passes through a
 * link. Owners and special bits of the archive are ignored.
 */

const root: string = workerData;
let open: { readonly fd: number; readonly modifiedAt: number } | undefined;

const carryOut = (write: Write, bytes: Uint8Array, at: number): number => {
  switch (write.kind) {
    case 'content':
      writeAll(bytes.subarray(at, at + write.length));
      return at + write.length;
    case 'end':
      endFile();
      break;
    case 'file':
      open = {
        fd: openSync(join(root, write.path), 'wx', write.executable ? 0o755 : 0o644),
        modifiedAt: write.modifiedAt,
      };
      break;
    case 'folder':
      mkdirSync(join(root, write.path), 0o755);
      break;
    case 'link':
      symlinkSync(write.target, join(root, write.path));
      break;
    case 'hard-link':
      linkSync(join(root, write.to), join(root, write.path));
      break;
    case 'remove':
      rmSync(join(root, write.path), { recursive: true });
      break;
  }
  return at;
};

const writeAll = (bytes: Uint8Array): void => {
  if (!open) throw new Error('content without a file');
  for (let at = 0; at < bytes.length;) at += writeSync(open.fd, bytes, at);
};

const endFile = (): void => {
  if (!open) return;
  // Interpreters compare this time with that of their compiled files.
  futimesSync(open.fd, open.modifiedAt, open.modifiedAt);
  closeSync(open.fd);
  open = undefined;
};

parentPort?.on('message', ({ writes, bytes }: Batch) => {
  let answer: Written = {};
  try {
    let at = 0;
    for (const write of writes) at = carryOut(write, bytes, at);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    answer = { failed: { code, message: error instanceof Error ? error.message : String(error) } };
  }
  parentPort?.postMessage(answer);
});
