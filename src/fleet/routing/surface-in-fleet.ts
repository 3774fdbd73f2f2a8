import type { Caller } from '../../model/tenant.ts';

export interface ShownTerms {
  readonly clusterId: string;
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** Who asked the manager. */
  readonly caller: Caller;
  /** The URL of this API as the client knows it. */
  readonly base: string;
}

/** Describes how a manager speaks an API other than the REST API over the clusters of its fleet. */
export interface SurfaceInFleet {
  /** Stands before the paths of this API at a worker. */
  readonly base: string;
  /** Headers, in small letters, that are for the manager alone. */
  readonly secrets: ReadonlySet<string>;
  /** Whether this API has names for what is on a cluster. */
  readonly serves: (clusterId: string) => boolean;
  /** Returns the pool or env that a body or a query asks for, as it is known by aliases. */
  readonly poolOf: (asked: unknown) => string | undefined;
  /** The parameter of a list's query that names a pool. */
  readonly poolParameter: string;
  /** Returns the cluster that it names. Refuses one that this API has no names for. */
  readonly clusterOf: (asked: unknown) => string | undefined;
  /** How long its claims wait, whichever clusters they are sent to. */
  readonly waitMs: number;
  /** Returns the body with no alias in it; `name` in place of its pool. */
  readonly claimOf: (body: object, name?: string) => object;
  /** Makes what a worker answered this API's. Throws the refusal that it is. */
  readonly shown: (body: object, terms: ShownTerms) => object;
  /** Header of a list that says where it goes on: beside its `items` that is `next`. */
  readonly nextHeader: string;
}
