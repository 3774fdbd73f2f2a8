import type { Revision } from '../identifiers.ts';

export const MOST_CLUSTERS = 1_000;

/** Holds only the hash of a join token. Times in ms. */
export interface ClusterRecord {
  readonly clusterId: string;
  readonly revision: Revision;
  /** SHA-256 of the latest unused join token, hex. */
  readonly joinHash?: string;
  readonly joinEndsAt?: number;
  /** Ed25519, SPKI in base64; absent if it has never joined. */
  readonly publicKey?: string;
  readonly joinedAt?: number;
  /** Only in a worker's record of itself. */
  readonly cutOffAt?: number;
}

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

/** `Silent`: no messages arrive at present. `Leaving`: the replica that opened it is stopping. */
export const LINK_STATUSES = ['Open', 'Silent', 'Leaving'] as const;
export type LinkStatus = (typeof LINK_STATUSES)[number];
