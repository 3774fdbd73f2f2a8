import { createHash } from 'node:crypto';
import type { InstanceDefinition } from './template.ts';

/** A hash of the rendered definition: instances of one hash are interchangeable. */
export const updateRevisionOf = (definition: InstanceDefinition): string =>
  createHash('sha256').update(JSON.stringify(definition)).digest('hex').slice(0, 16);
