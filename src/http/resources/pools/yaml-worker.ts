import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { stringify } from 'yaml';
import type { YamlOrder, YamlText } from './yaml-thread.ts';

parentPort?.on('message', ({ id, json }: YamlOrder) => {
  const answer: YamlText = {
    id,
    text: stringify(JSON.parse(json), { aliasDuplicateObjects: false }),
  };
  parentPort?.postMessage(answer);
});

/** The event loop gets scarce CPU first. */
const NICENESS = 10;

const lowerPriority = (): void => {
  try {
    // Linux has a priority per thread; the TID ends PID/task/TID.
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), NICENESS);
  } catch {
    // Others keep the normal priority.
  }
};

lowerPriority();
