import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { stringify } from 'yaml';
import type { YamlOrder, YamlText } from './yaml-thread.ts';

/** Worker of YamlThread: converts JSON to YAML. */
parentPort?.on('message', ({ id, json }: YamlOrder) => {
  const answer: YamlText = {
    id,
    text: stringify(JSON.parse(json), { aliasDuplicateObjects: false }),
  };
  parentPort?.postMessage(answer);
});

/** Niceness of this thread, so that the event loop gets scarce CPU first. */
const NICENESS = 10;

const lowerPriority = (): void => {
  try {
    // Linux has a priority per thread; the TID is the last segment of PID/task/TID.
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), NICENESS);
  } catch {
    // Other systems keep the normal priority.
  }
};

lowerPriority();
