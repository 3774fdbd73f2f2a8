import { z } from 'zod';

/**
 * Version of the link's protocol: the manager sends HTTP/2 requests, the worker answers.
 *
 * `POST /hello` exchanges keys and nonces. `POST /prove` makes the manager sign both, then the
 * worker, which gives its join token only to an authenticated manager. `POST /keys` sends promoted
 * keys. `POST /welcome` accepts the worker; `POST /refused` gives the reason of a refusal.
 *
 * Afterwards, `POST /replicas` sends the number of replicas, `POST /templates` global templates,
 * and `POST /template` asks for the state of one. The worker answers `POST /leave` when it accepts
 * no new requests.
 */
export const LINK_VERSION = 1;

const text = z.string().min(1).max(512);
const half = text;

export const ManagerHello = z.object({
  version: z.int(),
  managerKey: text,
  nonce: text,
  replica: text,
  /** Empty if TLS ends before the manager. */
  channel: z.string().max(512),
  half,
});
export const WorkerHello = z.object({
  version: z.int(),
  clusterID: text,
  clusterKey: text,
  nonce: text,
  replica: text,
  address: text,
  half,
  /** Identifies this start of a daemon with a local store; absent if replicas share a store. */
  start: z.string().min(1).max(64).optional(),
});
export const ManagerProof = z.object({ signature: text });
/** `held`: another link to this replica exists, so the manager ends this one. */
export const WorkerProof = z.union([
  z.object({ held: z.literal(true) }),
  z.object({ signature: text, joinToken: text.optional() }),
]);
/** A worker's replica to one manager, and a cluster to one replica of a manager. */
export const MOST_REPLICAS = 64;
const replicas = z.int().min(1).max(1_000_000);
export const Welcome = z.object({ linkId: text, replicas });
export const ReplicaCount = z.object({ replicas });
/**
 * `left`: unknown to the manager, so the worker must delete its promoted keys. `copied`: another
 * start of the cluster is linked.
 */
export const Refused = z.object({
  error: text,
  left: z.literal(true).optional(),
  copied: z.literal(true).optional(),
});

export type ManagerHello = z.infer<typeof ManagerHello>;
export type WorkerHello = z.infer<typeof WorkerHello>;

/** The other end sent a message that is unknown or not allowed now. */
export class UnsoundWord extends Error {
  override readonly name = 'UnsoundWord';
}

export const isOfOtherEnd = (error: unknown): boolean =>
  error instanceof UnsoundWord || error instanceof z.ZodError || error instanceof SyntaxError;

export const MOST_WORDS = 8_192;

/**
 * Text that both ends sign. It holds the signer's role and both halves, so a man in the middle can
 * neither reuse a signature nor replace a half.
 */
export const transcriptOf = (
  by: 'manager' | 'worker',
  manager: ManagerHello,
  worker: WorkerHello,
): string =>
  JSON.stringify([
    'sandpool link',
    by,
    LINK_VERSION,
    manager.managerKey,
    manager.nonce,
    manager.replica,
    manager.channel,
    worker.clusterID,
    worker.clusterKey,
    worker.nonce,
    worker.replica,
    worker.address,
    manager.half,
    worker.half,
  ]);
