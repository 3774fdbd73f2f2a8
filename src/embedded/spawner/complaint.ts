import type { ChildProcess } from 'node:child_process';

const MOST_CHARACTERS = 1_024;

/** Reads a launcher's stderr. Returns a function that returns its beginning. */
export const complaintOf = (launcher: ChildProcess): (() => string) => {
  let complaint = '';
  launcher.stderr?.on('data', (bytes: Buffer) => {
    complaint += String(bytes).slice(0, MOST_CHARACTERS - complaint.length);
  });
  return () => complaint.trim();
};
