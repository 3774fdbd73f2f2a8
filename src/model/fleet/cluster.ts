import type { Revision } from '../identifiers.ts';

/** Most worker clusters of one fleet. */
export const MOST_CLUSTERS = 1_000;

/**
 * A worker cluster in its manager's store. It never has a secret, only the hash of a join token and
 * the cluster's public key. Times in ms.
 */
export interface ClusterRecord {
  readonly clusterId: string;
  readonly revision: Revision;
  /** SHA-256 of the latest unused join token, hex. */
  readonly joinHash?: string;
  readonly joinEndsAt?: number;
  /** Ed25519, SPKI in base64; absent if it has never joined. */
  readonly publicKey?: string;
  readonly joinedAt?: number;
  /** In a worker's record of itself: time at which its managers were cut off. */
  readonly cutOffAt?: number;
}

/** States of a global template on a cluster, as its manager sees it. */
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
 * States of a link. `Silent`: no messages arrive at present. `Leaving`: the replica that opened it
 * is stopping.
 */
export const LINK_STATUSES = ['Open', 'Silent', 'Leaving'] as const;
export type LinkStatus = (typeof LINK_STATUSES)[number];
