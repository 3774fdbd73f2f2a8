import type { ChildProcess } from 'node:child_process';

const MOST_CHARACTERS = 1_024;

/** Collects the launcher's errors. Returns a function that returns their beginning. */
export const complaintOf = (launcher: ChildProcess): (() => string) => {
  let complaint = '';
  launcher.stderr?.on('data', (bytes: Buffer) => {
    complaint += String(bytes).slice(0, MOST_CHARACTERS - complaint.length);
  });
  return () => complaint.trim();
};
