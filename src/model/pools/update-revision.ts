import { createHash } from 'node:crypto';
import { isSameData } from '../../lib/plain-data.ts';
import type { InstanceDefinition } from '../templates/template.ts';

/** Instances with equal hashes are interchangeable. */
export const updateRevisionOf = (definition: InstanceDefinition): string =>
  createHash('sha256').update(JSON.stringify(definition)).digest('hex').slice(0, 16);

/** Ignores the timeouts of start, idleness and lifetime, and whether endpoints are published. */
export const runsTheSame = (one: InstanceDefinition, other: InstanceDefinition): boolean =>
  one === other || isSameData(runOf(one), runOf(other));

const runOf = ({
  startupTimeoutMs: _start,
  idleTimeoutMs: _idle,
  maxLifetimeMs: _life,
  unpublished: _published,
  ...run
}: InstanceDefinition): object => run;
