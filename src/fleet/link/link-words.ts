import { z } from 'zod';

/**
 * Version of the link's protocol. The manager sends HTTP/2 requests and the worker answers. Before
 * the link carries requests:
 *
 * `POST /hello` exchanges keys and nonces. `POST /prove` makes the manager sign both, and then the
 * worker. The worker gives its join token only to an authenticated manager. `POST /keys` sends
 * promoted keys. `POST /welcome` accepts the worker; `POST /refused` gives the reason of a refusal.
 *
 * Afterwards: `POST /replicas` sends each change of the manager's number of replicas. The worker
 * answers `POST /leave` when it accepts no new requests. `POST /templates` sends global templates,
 * and `POST /template` asks for the state of one at the worker.
 */
export const LINK_VERSION = 1;

const text = z.string().min(1).max(512);
/** One end's half of the secret that signs identities. */
const half = text;

export const ManagerHello = z.object({
  version: z.int(),
  managerKey: text,
  nonce: text,
  replica: text,
  /** Name of the TLS connection; empty if TLS ends before the manager. */
  channel: z.string().max(512),
  half,
});
export const WorkerHello = z.object({
  version: z.int(),
  clusterID: text,
  clusterKey: text,
  nonce: text,
  replica: text,
  /** Origin of the dialled URL. */
  address: text,
  half,
  /**
   * Identifies this start of a daemon with a local store: only one start of such a cluster is
   * linked at a time. Absent if replicas share a store.
   */
  start: z.string().min(1).max(64).optional(),
});
export const ManagerProof = z.object({ signature: text });
/** `held`: another link to this replica exists, so the manager ends this one. */
export const WorkerProof = z.union([
  z.object({ held: z.literal(true) }),
  z.object({ signature: text, joinToken: text.optional() }),
]);
/**
 * Maximum links of a worker's replica to one manager, and of a cluster to one replica of a manager.
 */
export const MOST_REPLICAS = 64;
const replicas = z.int().min(1).max(1_000_000);
export const Welcome = z.object({ linkId: text, replicas });
export const ReplicaCount = z.object({ replicas });
/**
 * `left`: the manager does not know the cluster, so the worker must delete its promoted keys.
 * `copied`: another start of the cluster is linked, and answers.
 */
export const Refused = z.object({
  error: text,
  left: z.literal(true).optional(),
  copied: z.literal(true).optional(),
});

export type ManagerHello = z.infer<typeof ManagerHello>;
export type WorkerHello = z.infer<typeof WorkerHello>;

/** The other end sent an unknown message, or a message that is not allowed now. */
export class UnsoundWord extends Error {
  override readonly name = 'UnsoundWord';
}

/** Returns whether an error is the other end's fault, not that of this end or the network. */
export const isOfOtherEnd = (error: unknown): boolean =>
  error instanceof UnsoundWord || error instanceof z.ZodError || error instanceof SyntaxError;

/** Maximum characters of one message. */
export const MOST_WORDS = 8_192;

/**
 * Returns the text that both ends sign. It begins with the signer's role, so one end's signature is
 * not valid for the other. It holds both halves, so a man in the middle cannot replace them.
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
