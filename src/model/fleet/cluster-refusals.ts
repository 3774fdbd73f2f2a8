import { Refusal } from '../refusals.ts';

/** Refusal where no link to a known cluster stands, or it broke. `why` ends the sentence. */
export const clusterUnavailable = (clusterID: string, why: string): Refusal =>
  new Refusal('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} ${why}`, {
    detail: { clusterID },
    retryAfter: 1,
  });

/** Refusal where a link broke before an answer came over it. */
export class AnswerLost extends Refusal {
  constructor(clusterID: string) {
    const unsure = 'whether this took effect is not known, look before you repeat it';
    super('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} gave no answer; ${unsure}`, {
      detail: { clusterID },
      retryAfter: 1,
    });
  }
}

/** Refusal where a link carries as much as it may: nothing was sent. `why` ends the sentence. */
export class LinkBusy extends Refusal {
  constructor(clusterID: string, why: string) {
    super('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} ${why}`, {
      detail: { clusterID },
      retryAfter: 1,
    });
  }
}

/** Refusal where a cluster is asked as much as it may be: it says nothing about the cluster. */
export class ClusterBusy extends Refusal {
  constructor(clusterID: string) {
    super('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} is asked too much now; try again`, {
      detail: { clusterID },
      retryAfter: 1,
    });
  }
}

/**
 * Refusal of a request under an Idempotency-Key that went to a pool of another cluster before; a
 * manager sends it there again.
 */
export class RequestPlaced extends Refusal {
  /** Names the pool as a manager's API does, such as `west::default`. */
  readonly place: string;

  constructor(place: string) {
    super('CONFLICT', `this Idempotency-Key was used for ${place}; repeat it at the manager`);
    this.place = place;
  }
}

/** Refusal at a worker, whose copy of a promoted key is the manager's to change. */
export const apiKeyPromotedElsewhere = (what: string): Refusal =>
  new Refusal('CONFLICT', `a manager promoted this API key: ${what}`);
