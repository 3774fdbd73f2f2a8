import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { stringify } from 'yaml';
import type { YamlOrder, YamlText } from './yaml-thread.ts';

/** Turns documents, as JSON, into YAML: see YamlThread. */
parentPort?.on('message', ({ id, json }: YamlOrder) => {
  const answer: YamlText = {
    id,
    text: stringify(JSON.parse(json), { aliasDuplicateObjects: false }),
  };
  parentPort?.postMessage(answer);
});

/** Niceness of this thread: where processors are short the event loop comes first. */
const NICENESS = 10;

const lowerPriority = (): void => {
  try {
    // Linux gives each thread a priority of its own, by the last number of PID/task/TID.
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), NICENESS);
  } catch {
    // Elsewhere it shares the processors evenly.
  }
};

lowerPriority();
