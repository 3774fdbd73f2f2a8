import { createHash } from 'node:crypto';
import { isSameData } from '../../lib/plain-data.ts';
import type { InstanceDefinition } from '../templates/template.ts';

/** A hash of the rendered definition: instances of one hash are interchangeable. */
export const updateRevisionOf = (definition: InstanceDefinition): string =>
  createHash('sha256').update(JSON.stringify(definition)).digest('hex').slice(0, 16);

/**
 * Whether instances of both run the same; how long they may start, idle and live, and whether
 * endpoints are published, is not of what runs.
 */
export const runsTheSame = (one: InstanceDefinition, other: InstanceDefinition): boolean =>
  one === other || isSameData(runOf(one), runOf(other));

const runOf = ({
  startupTimeoutMs: _start,
  idleTimeoutMs: _idle,
  maxLifetimeMs: _life,
  unpublished: _published,
  ...run
}: InstanceDefinition): object => run;
