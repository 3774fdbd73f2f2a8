import { v7 } from 'uuid';
import {
  CLOSED_BREAKER,
  DEFAULT_UPDATE_STRATEGY,
  type PoolRecord,
} from '../../../src/model/pools/pool.ts';
import { aDefinition, ALICE } from './instance-orders.ts';

/** Not stored yet. Tests name only what matters to them. */
export const aPool = (part: Partial<PoolRecord> = {}): Omit<PoolRecord, 'revision'> => ({
  uid: v7(),
  name: 'default',
  owner: ALICE,
  createdAt: 1,
  replicas: 2,
  source: { templateName: 'default' },
  updateStrategy: DEFAULT_UPDATE_STRATEGY,
  templateVersion: '1',
  labels: {},
  annotations: {},
  definition: aDefinition(),
  updateRevision: 'r1',
  breaker: CLOSED_BREAKER,
  deleting: false,
  ...part,
});

/** As a store returns it. */
export const aStoredPool = (part: Partial<PoolRecord> = {}): PoolRecord => ({
  revision: '1',
  ...aPool(part),
});
