import type { METRICS } from '../../contracts/metric-catalogue.ts';
import { silentMetrics, type Metrics } from '../../contracts/metrics.ts';
import type { OnStep } from '../../contracts/tracing.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Operations } from '../operations.ts';

/**
 * `find`: the pool and an idle instance of it. `wait`: in line for one. `admit`: its turn and its
 * quota. `write`: the update of the record. `files`: those that the claim brings.
 */
export type ClaimStep = 'find' | 'wait' | 'admit' | 'write' | 'files';

/**
 * Times a step, whether it goes well or not. One whose name shows in the end alone is asked for it
 * then.
 */
export const claimSteps =
  (metrics: Metrics = silentMetrics, tell?: OnStep) =>
  async <T>(step: ClaimStep | (() => ClaimStep), work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    try {
      return await work();
    } finally {
      const [name, ended] = [typeof step === 'string' ? step : step(), performance.now()];
      metrics.observe('sandpool_claim_step_seconds', { step: name }, (ended - began) / 1_000);
      tell?.(name, began, ended);
    }
  };

/** Counts and times claims by how they ended. */
export const measuredClaims =
  (
    claim: Operations['claimSandbox'],
    metrics: Metrics = silentMetrics,
  ): Operations['claimSandbox'] =>
  async (caller, request, signal) => {
    const began = performance.now();
    const ended = (result: ClaimResult): void => {
      metrics.count('sandpool_claims_total', { result });
      metrics.observe('sandpool_claim_seconds', { result }, (performance.now() - began) / 1_000);
    };
    try {
      const sandbox = await claim(caller, request, signal);
      ended('claimed');
      return sandbox;
    } catch (error) {
      ended(resultOf(error, signal));
      throw error;
    }
  };

type ClaimResult = (typeof METRICS)['sandpool_claims_total']['known'][number];

const resultOf = (error: unknown, signal: AbortSignal | undefined): ClaimResult => {
  if (signal?.aborted && error === signal.reason) return 'gone';
  if (!(error instanceof Refusal)) return 'failed';
  switch (error.code) {
    case 'POOL_EXHAUSTED':
      return 'exhausted';
    case 'QUOTA_EXCEEDED':
      return 'quota';
    case 'UNAVAILABLE':
      return 'unavailable';
    default:
      return 'refused';
  }
};
