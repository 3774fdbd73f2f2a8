import { Refusal } from '../refusals.ts';

/** Refusal where no link to a known cluster stands, or it broke. `why` ends the sentence. */
export const clusterUnavailable = (clusterID: string, why: string): Refusal =>
  new Refusal('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} ${why}`, {
    detail: { clusterID },
    retryAfter: 1,
  });
