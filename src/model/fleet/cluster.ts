import type { Revision } from '../identifiers.ts';

/** The most worker clusters of one fleet. */
export const MOST_CLUSTERS = 1_000;

/**
 * A worker cluster as its manager keeps it: never a secret, only the hash of a join token and the
 * public half of the cluster's key. Times in ms.
 */
export interface ClusterRecord {
  readonly clusterId: string;
  readonly revision: Revision;
  /** SHA-256 of the join token that was made last and not used yet, hex. */
  readonly joinHash?: string;
  readonly joinEndsAt?: number;
  /** Ed25519, SPKI in base64; absent: it has never joined. */
  readonly publicKey?: string;
  readonly joinedAt?: number;
  /** Says since when a worker's managers are cut off, in its record of itself. */
  readonly cutOffAt?: number;
}

/** Lists how a cluster may stand to a global template, as its manager sees it. */
export const TEMPLATE_STATES = [
  'Synced',
  'Pending',
  'Conflict',
  'Refused',
  'Absent',
  'Unsupported',
  'Unreachable',
] as const;
export type TemplateState = (typeof TEMPLATE_STATES)[number];

/**
 * Lists how a link may stand. `Silent`: nothing comes of it at this time; `Leaving`: the replica
 * that opened it stops.
 */
export const LINK_STATUSES = ['Open', 'Silent', 'Leaving'] as const;
export type LinkStatus = (typeof LINK_STATUSES)[number];
