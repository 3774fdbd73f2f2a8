import { Refusal } from '../refusals.ts';

/** A known cluster has no open link, or its link broke. `why` ends the sentence. */
export const clusterUnavailable = (clusterID: string, why: string): Refusal =>
  new Refusal('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} ${why}`, {
    detail: { clusterID },
    retryAfter: 1,
  });

/** A link broke before an answer arrived. */
export class AnswerLost extends Refusal {
  constructor(clusterID: string) {
    const unsure = 'the outcome is unknown; check the result before you repeat the request';
    super('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} did not answer; ${unsure}`, {
      detail: { clusterID },
      retryAfter: 1,
    });
  }
}

/** A link is at its capacity; nothing was sent. `why` ends the sentence. */
export class LinkBusy extends Refusal {
  constructor(clusterID: string, why: string) {
    super('CLUSTER_UNAVAILABLE', `the cluster ${clusterID} ${why}`, {
      detail: { clusterID },
      retryAfter: 1,
    });
  }
}

/** A cluster has its maximum of requests in progress, whatever its health. */
export class ClusterBusy extends Refusal {
  constructor(clusterID: string) {
    super(
      'CLUSTER_UNAVAILABLE',
      `the cluster ${clusterID} has too many requests in progress; try again`,
      {
        detail: { clusterID },
        retryAfter: 1,
      },
    );
  }
}

/**
 * A request under an Idempotency-Key was sent to a pool of another cluster before; a manager sends
 * it there again.
 */
export class RequestPlaced extends Refusal {
  /** In a manager's API, such as `west::default`. */
  readonly place: string;

  constructor(place: string) {
    super(
      'CONFLICT',
      `this Idempotency-Key was used for ${place}; repeat the request at the manager`,
    );
    this.place = place;
  }
}

export const apiKeyPromotedElsewhere = (what: string): Refusal =>
  new Refusal('CONFLICT', `a manager promoted this API key: ${what}`);
