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
